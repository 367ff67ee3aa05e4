// How C functions fail: one function for each of the three conventions of mrc.h; each also sets
// errno. An exception inside (memory that cannot be allocated) becomes ENOMEM: no exception passes
// the C edge.
#pragma once

#include <cerrno>
#include <cstdint>
#include <exception>

#include "base/result.h"
#include "device/fork_guard.h"

namespace weft::device {

constexpr int errno_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
      return EINVAL;
    case ErrorKind::kExhausted:
      return ENOMEM;
    case ErrorKind::kNotFound:
      return ENOENT;
    case ErrorKind::kWrongState:
      return EINVAL;
    case ErrorKind::kBusy:
      return EBUSY;
    case ErrorKind::kUnsupported:
      return EOPNOTSUPP;
    case ErrorKind::kSystem:
      return EIO;
  }
  return EINVAL;
}

// The three conventions: "-1 with errno", "NULL", "the errno value itself".
inline int fail_minus_one(int error) {
  errno = error;
  return -1;
}
inline std::nullptr_t fail_null(int error) {
  errno = error;
  return nullptr;
}
inline int fail_value(int error) {
  errno = error;
  return error;
}
// Returns 0, or what `fail` makes of the error.
template <typename Fail>
int returned(int error, Fail fail) {
  return error == 0 ? 0 : fail(error);
}

// Runs `body`, which returns an errno value or 0. In a forked child, a call for our devices fails
// with EPERM and does not run `body`; a call for a real device runs.
template <typename Body>
int guarded(bool ours, Body body) noexcept {
  if (ours && is_forked_child()) return EPERM;
  try {
    return body();
  } catch (const std::exception&) {
    return ENOMEM;
  }
}
template <typename Body>
int guarded(Body body) noexcept {
  return guarded(true, body);
}
// The same for functions that return a pointer: null, with errno set, on failure.
template <typename T, typename Body>
T* guarded_pointer(bool ours, Body body) noexcept {
  if (ours && is_forked_child()) return fail_null(EPERM);
  try {
    return body();
  } catch (const std::exception&) {
    return fail_null(ENOMEM);
  }
}
template <typename T, typename Body>
T* guarded_pointer(Body body) noexcept {
  return guarded_pointer<T>(true, body);
}

}  // namespace weft::device
