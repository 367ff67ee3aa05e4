// CtlError: why a controller's call failed: an errno value for the API, and one line of text for
// the user.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace weft::control {

struct CtlError {
  int code = 0;  // an errno value, never 0
  std::string message{};
};

template <typename T>
using CtlResult = Result<T, CtlError>;

inline CtlError ctl_error(int code, std::string message) { return {code, std::move(message)}; }

}  // namespace weft::control
