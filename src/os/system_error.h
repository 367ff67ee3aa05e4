// A system call that failed, as an error: what was tried, and what the system says of it.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace weft::os {

// By default of the call that failed last.
inline Error system_error(std::string_view what, int error = errno) {
  std::string message = std::string(what) + ": " + std::strerror(error);
  if (error == EMFILE) message += "; raise `ulimit -n`";
  return {ErrorKind::kSystem, std::move(message)};
}

}  // namespace weft::os
