// LabKeeper: the process that makes a lab possible without root. It holds a user, a mount and a
// network namespace in which we are root. The names of the lab's namespaces exist only there, and
// the lab ends with the keeper. The keeper is identified by process id and start time, so that a
// later process with the same id is never mistaken for it.
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

// The process that has this id now, with its start time; nullopt if there is none.
std::optional<LabKeeper> find_process(pid_t pid);
// A process that cannot be checked counts as alive, so that its lab is not taken over.
bool is_alive(const LabKeeper& keeper);
// Kills the process and waits until it has ended; success also if it had already ended. Errors:
// kSystem, also if its state cannot be read (for lack of descriptors, for example).
Result<void> end_keeper(const LabKeeper& keeper);

// Whether this process may make namespaces, mount and configure networks without a keeper.
bool is_lab_root();

// Starts a keeper. Until let_go() is called, the keeper ends with this object or with this process.
class NewKeeper {
 public:
  // Errors: kUnsupported, with the permission that this machine lacks.
  static Result<NewKeeper> start();
  const LabKeeper& keeper() const { return keeper_; }
  void let_go();

 private:
  NewKeeper() = default;
  LabKeeper keeper_{};
  // The keeper reads from the other end: after one byte it lives on by itself, at the end of the
  // stream it exits.
  os::FileDescriptor lifetime_socket_;
};

}  // namespace weft::lab
