// NamespaceScope: during its lifetime, this thread opens its sockets in another network namespace.
// A socket stays in the namespace in which it was made.
#pragma once

#include <string>

#include "base/result.h"

namespace weft::os {

class NamespaceScope {
 public:
  // Enters the namespace with this path, such as /run/netns/NAME or /proc/PID/ns/net. With an empty
  // path the thread stays in its namespace.
  static Result<NamespaceScope> enter(const std::string& path);
  NamespaceScope(NamespaceScope&& other) noexcept;
  NamespaceScope& operator=(NamespaceScope&& other) = delete;
  ~NamespaceScope();

 private:
  explicit NamespaceScope(int back) : back_(back) {}
  int back_ = -1;  // the namespace to return to; -1: none was entered
};

}  // namespace weft::os
