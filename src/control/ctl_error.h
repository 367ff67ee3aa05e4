// CtlError: why a controller's call failed, as the API says it (an errno value) and as a person
// reads it (one line).
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace weft::control {

struct CtlError {
  int code = 0;  // an errno value, never 0 in an error
  std::string message{};
};

template <typename T>
using CtlResult = Result<T, CtlError>;

inline CtlError ctl_error(int code, std::string message) { return {code, std::move(message)}; }

}  // namespace weft::control
