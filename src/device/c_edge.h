// How C functions fail. mrc.h has three conventions: -1 with errno, NULL, and the errno value
// itself. There is one function for each; all of them also set errno. An exception inside (memory
// that cannot be allocated) becomes ENOMEM: no exception leaves a C function.
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

// The three conventions, in this order: "-1 with errno", "NULL", "the errno value itself".
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
// Runs `body`. Returns 0, or what `fail` returns for the error of `body`.
template <typename Fail>
int returned(int error, Fail fail) {
  return error == 0 ? 0 : fail(error);
}

// Runs `body`, which returns an errno value or 0. In a forked child, a call for one of our devices
// fails with EPERM and does not run `body`; a call for a real NIC runs it.
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
// As above, for functions that return a pointer: on failure null, with errno set.
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
