// What a test finds, thrown: a check that does not hold ends its test at once. Exceptions are used
// here and nowhere else in the program, because a test is a straight line of steps of which each
// may end it; the runner catches them in the test's own process.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft::conformance {

// The device did not do what the clause says. Both in words, for one line.
struct Failure {
  std::string expected, got;
};
// The test does not apply, and why.
struct Skip {
  std::string reason;
};
// The suite itself could not do its part.
struct Trouble {
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
// The same, in hexadecimal.
void equal_hex(std::string_view what, std::uint64_t got, std::uint64_t expected);
inline void holds(bool held, std::string_view expected, std::string_view got) {
  if (!held) fail(std::string(expected), std::string(got));
}
// A step that must work for the test to mean anything: 0, or a pointer.
void works(std::string_view what, int returned);
void works(std::string_view what, const void* returned);

// The three ways in which functions of the API fail. Each takes what the call returned, with errno
// as it left it; the call stands in the same expression.
using Errnos = std::initializer_list<int>;
void fails_minus_one(std::string_view what, int returned, Errnos expected);
void fails_null(std::string_view what, const void* returned, Errnos expected);
void fails_value(std::string_view what, int returned, Errnos expected);

// "EINVAL"; a number that has no name as it is.
std::string errno_name(int value);
// "REM_ACCESS_ERR" of an ibv_wc_status.
std::string status_name(int status);

}  // namespace weft::conformance
