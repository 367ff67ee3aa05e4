// Checks, and the exceptions that they throw: a failed check ends its test at once. Only the
// conformance suite uses exceptions, because a test is a sequence of steps and each step may end
// the test. The runner catches them in the test's own process.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft::conformance {

// Thrown when the device violates the clause. Both texts are printed on one line.
struct Failure {
  std::string expected, got;
};
// Thrown when the test does not apply to this device; `reason` says why.
struct Skip {
  std::string reason;
};
// Thrown when the suite itself could not run the test.
struct SuiteError {
  std::string what;
};

[[noreturn]] inline void fail(std::string expected, std::string got) {
  throw Failure{std::move(expected), std::move(got)};
}
[[noreturn]] inline void skip(std::string reason) { throw Skip{std::move(reason)}; }

template <typename T>
std::string text_of_value(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return fmt::format("{}", static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_pointer_v<T>) {
    return value == nullptr ? "NULL" : fmt::format("{}", static_cast<const void*>(value));
  } else {
    return fmt::format("{}", value);
  }
}

template <typename T, typename U>
void equal(std::string_view what, const T& got, const U& expected) {
  const auto wanted = static_cast<T>(expected);
  if (got == wanted) return;
  fail(fmt::format("{} {}", what, text_of_value(wanted)), text_of_value(got));
}
// As equal(), but the message has hexadecimal numbers.
void equal_hex(std::string_view what, std::uint64_t got, std::uint64_t expected);
inline void holds(bool held, std::string_view expected, std::string_view got) {
  if (!held) fail(std::string(expected), std::string(got));
}
// For set-up steps: throws Failure unless the call returned 0, or a pointer that is not NULL.
void works(std::string_view what, int returned);
void works(std::string_view what, const void* returned);

// For calls that must fail, one function for each convention by which the API reports errors. Each
// function also reads errno, so the call must be in the same expression.
using Errnos = std::initializer_list<int>;
void fails_minus_one(std::string_view what, int returned, Errnos expected);
void fails_null(std::string_view what, const void* returned, Errnos expected);
void fails_value(std::string_view what, int returned, Errnos expected);

// The name, such as "EINVAL"; the number as text if the value has no name.
std::string errno_name(int value);
// The name of an ibv_wc_status, such as "REM_ACCESS_ERR".
std::string status_name(int status);

}  // namespace weft::conformance
