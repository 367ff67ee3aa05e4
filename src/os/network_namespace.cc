#include "os/network_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace weft::os {

Result<NamespaceScope> NamespaceScope::enter(const std::string& path) {
  if (path.empty()) return NamespaceScope(-1);
  const int back = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  const int there = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool entered = back >= 0 && there >= 0 && setns(there, CLONE_NEWNET) == 0;
  const std::string why = std::strerror(errno);
  if (there >= 0) close(there);
  if (entered) return NamespaceScope(back);
  if (back >= 0) close(back);
  return Error{ErrorKind::kSystem, "network namespace " + path + ": " + why};
}

NamespaceScope::NamespaceScope(NamespaceScope&& other) noexcept
    : back_(std::exchange(other.back_, -1)) {}

NamespaceScope::~NamespaceScope() {
  if (back_ < 0) return;
  // The thread must return to its own namespace, or its later sockets would be in the wrong one.
  WEFT_ASSERT(setns(back_, CLONE_NEWNET) == 0);
  close(back_);
}

}  // namespace weft::os
