// NewSwitch: starts the software switch of a lab as a process of its own. The switch outlives this
// process. As a keeper, it is identified by process id and start time.
//
// It starts in two steps, so that a crash leaves no unknown process. First the new process waits
// while its id is written to the lab's file. Then let_go() makes it run, and it reports whether it
// started. Until let_go() it ends with this process; if `leashed`, afterwards too.
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
    LabEntry lab_entry;
    std::string netns;
    std::string control_path;  // of the control socket, as seen outside the lab
    bool ends_with_caller =
        false;  // the switch ends when take_lifetime_socket()'s result is closed
  };

  // Starts the process, which then waits for let_go(). The fork copies `orders` to it. REQUIRES a
  // process without threads.
  static Result<NewSwitch> start(const Orders& orders);
  const LabKeeper& process() const { return process_; }
  // Makes the switch run, and waits until it forwards packets. Errors: those that the switch
  // reports.
  Result<void> let_go();
  // The descriptor that keeps the switch alive. REQUIRES orders with `leashed`, and let_go()
  // before.
  os::FileDescriptor take_lifetime_socket() { return std::move(channel_); }

 private:
  NewSwitch() = default;
  LabKeeper process_{};
  // Our end of a socket. A byte makes the switch run, and the end of the stream makes it exit; the
  // switch answers with text.
  os::FileDescriptor channel_;
};

}  // namespace weft::lab
