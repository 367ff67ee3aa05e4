// A system call that failed, as an error: what was tried, and what the system says of it.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weft::net {

// By default of the call that failed last.
inline Error system_error(std::string_view what, int error = errno) {
  return {ErrorKind::kSystem, std::string(what) + ": " + std::strerror(error)};
}

}  // namespace weft::net
