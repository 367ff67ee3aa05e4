// A failed system call as an Error: the call, and the system's reason.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace weft::os {

// `error` is an errno value, by default that of the last failed call.
inline Error system_error(std::string_view what, int error = errno) {
  std::string message = std::string(what) + ": " + std::strerror(error);
  if (error == EMFILE) message += "; raise `ulimit -n`";
  return {ErrorKind::kSystem, std::move(message)};
}

}  // namespace weft::os
