// NewSwitch: starts the software switch of a lab as a process of its own. It outlives this process
// and is identified by process id and start time, as a keeper is.
//
// It starts in two steps, so that a crash leaves no unknown process. First the process exists and
// waits, while its id is written to the lab's file. Then let_go() lets it run, and it reports
// whether it started. Until then it ends with this process; if `leashed`, also later.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/lab_keeper.h"
#include "lab/lab_process.h"
#include "os/file_descriptor.h"
#include "softswitch/live_fabric.h"

namespace weft::lab {

class NewSwitch {
 public:
  struct Orders {
    softswitch::LiveFabricConfig config;
    LabEntry door;
    std::string netns;
    std::string control_path;  // its path outside the lab
    bool leashed = false;      // it ends when the descriptor of take_leash() is closed
  };

  // REQUIRES a process without threads. The fork copies `orders` to the switch.
  static Result<NewSwitch> start(const Orders& orders);
  const LabKeeper& process() const { return process_; }
  // Waits until it forwards packets. Errors: those that it reports.
  Result<void> let_go();
  // REQUIRES orders with `leashed`, and let_go() before.
  os::FileDescriptor take_leash() { return std::move(talk_); }

 private:
  NewSwitch() = default;
  LabKeeper process_{};
  // A socket: a byte makes the switch run, the end of the stream makes it exit; it answers with
  // text.
  os::FileDescriptor talk_;
};

}  // namespace weft::lab
