// LabKeeper: how a lab exists without root. A keeper process holds a user, a mount and a network
// namespace in which we are root. The lab's namespaces have their names there, and everything ends
// when the keeper does. It is identified by process id and start time, so that another process that
// got the same id later is never mistaken for it.
//
// With root there is no keeper: the namespaces have names in /run/netns, as `ip netns` gives them.
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

// The process that has this id now; nullopt if there is none.
std::optional<LabKeeper> find_process(pid_t pid);
// A process that cannot be checked counts as alive, so that its lab is not taken over.
bool is_alive(const LabKeeper& keeper);
// Kills it and waits until it has ended; success also if it had already ended. Errors: kSystem,
// also if its state cannot be found out (for lack of descriptors, say).
Result<void> end_keeper(const LabKeeper& keeper);

// Whether this process may make namespaces, mount and configure networks without a keeper.
bool is_lab_root();

// A keeper that ends with this object, or with this process, unless let_go() is called.
class NewKeeper {
 public:
  // Errors: kUnsupported, with the permission that this machine lacks.
  static Result<NewKeeper> start();
  const LabKeeper& keeper() const { return keeper_; }
  void let_go();

 private:
  NewKeeper() = default;
  LabKeeper keeper_{};
  // The keeper reads it: a byte makes it independent, the end of the stream makes it exit.
  os::FileDescriptor lifetime_socket_;
};

}  // namespace weft::lab
