// LabKeeper: how a lab exists without root. A keeper process holds a user, a mount and a network
// namespace in which we are root; there the namespaces of the lab have their names, and everything
// ends when the keeper does. It is found again by process id and start time, so that a stranger who
// got the same id later is never taken for it.
//
// As root there is none: the namespaces have names in /run/netns, as `ip netns` gives them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "os/file_descriptor.h"

namespace weft::lab {

inline constexpr const char* kNetnsFolder = "/run/netns";

struct LabKeeper {
  pid_t pid = 0;
  std::uint64_t start = 0;  // clock ticks since boot, /proc/PID/stat
  friend bool operator==(const LabKeeper&, const LabKeeper&) = default;
};

// The process of this id, as it is now; nothing if there is none.
std::optional<LabKeeper> find_process(pid_t pid);
// One that cannot be looked at counts as alive: nobody takes its place.
bool is_alive(const LabKeeper& keeper);
// Ends it and waits until it is gone; one that is gone is fine. Errors: kSystem, also where nobody
// can tell (out of descriptors, say).
Result<void> end_keeper(const LabKeeper& keeper);

// May this process make namespaces, mount and configure networks as it is?
bool is_lab_root();

// A keeper on a leash: it ends with this object, or with this process, unless it was let go.
class NewKeeper {
 public:
  // Errors: kUnsupported, with what this machine would have to allow.
  static Result<NewKeeper> start();
  const LabKeeper& keeper() const { return keeper_; }
  void let_go();

 private:
  NewKeeper() = default;
  LabKeeper keeper_{};
  os::FileDescriptor leash_;  // the keeper reads it: a byte sets it free, the end ends it
};

}  // namespace weft::lab
