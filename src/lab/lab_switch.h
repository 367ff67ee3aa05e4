// NewSwitch: starts the software switch of a lab as a process of its own, which outlives us and is
// found again by process id and start time, as a keeper is.
//
// In two steps, so that no crash leaves one that nobody knows: it is there and waits; its id is
// written down; it is let go and says whether it stands. Before that it ends with us, and where the
// orders say so also later.
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
    LabDoor door;
    std::string netns;
    std::string control_path;  // as it is named outside the lab
    bool leashed = false;      // it ends when what take_leash() gives is closed
  };

  // REQUIRES a process without threads. `orders` travel by the fork.
  static Result<NewSwitch> start(const Orders& orders);
  const LabKeeper& process() const { return process_; }
  // Waits until it forwards. Errors: what it says.
  Result<void> let_go();
  // REQUIRES orders that said leashed, and let_go().
  os::FileDescriptor take_leash() { return std::move(talk_); }

 private:
  NewSwitch() = default;
  LabKeeper process_{};
  // A socket: a byte sets it free, the end ends it; it answers with text.
  os::FileDescriptor talk_;
};

}  // namespace weft::lab
