// Checks, and the exceptions that they throw: a check that fails ends its test at once. Only the
// conformance suite uses exceptions, because a test is a sequence of steps and each step may end
// it. The runner catches them in the test's own process.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft::conformance {

// The device violated the clause. Both texts are printed on one line.
struct Failure {
  std::string expected, got;
};
// The test does not apply, and why.
struct Skip {
  std::string reason;
};
// The suite itself could not run the test.
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
// As equal(), but prints hexadecimal numbers.
void equal_hex(std::string_view what, std::uint64_t got, std::uint64_t expected);
inline void holds(bool held, std::string_view expected, std::string_view got) {
  if (!held) fail(std::string(expected), std::string(got));
}
// A step of the test's set-up must succeed: the call returns 0, or a pointer that is not NULL.
void works(std::string_view what, int returned);
void works(std::string_view what, const void* returned);

// The three conventions by which functions of the API report errors. Each function takes the call's
// return value and reads errno, so the call must be in the same expression.
using Errnos = std::initializer_list<int>;
void fails_minus_one(std::string_view what, int returned, Errnos expected);
void fails_null(std::string_view what, const void* returned, Errnos expected);
void fails_value(std::string_view what, int returned, Errnos expected);

// "EINVAL"; the number itself if it has no name.
std::string errno_name(int value);
// The name of an ibv_wc_status, such as "REM_ACCESS_ERR".
std::string status_name(int status);

}  // namespace weft::conformance
