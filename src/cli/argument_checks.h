// Stricter checks for CLI11's arguments. CLI11 itself accepts "-1" for an unsigned number, prints
// range limits with 309 digits, and accepts an empty text as a name.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace weft::cli {

inline CLI::Validator whole_number(std::uint64_t least, std::uint64_t most = ~std::uint64_t{0}) {
  return CLI::Validator(
      [least, most](const std::string& text) -> std::string {
        std::uint64_t value = 0;
        const bool hex = text.starts_with("0x");  // masks are usually given in hexadecimal
        const char* const end = text.data() + text.size();
        const auto parsed = std::from_chars(text.data() + (hex ? 2 : 0), end, value, hex ? 16 : 10);
        const bool fits = value >= least && value <= most;
        if (parsed.ec == std::errc() && parsed.ptr == end && fits) return {};
        const std::string last = ~most == 0 ? "2^64 - 1" : std::to_string(most);
        return text + ": expected a whole number from " + std::to_string(least) + " to " + last;
      },
      "");
}

// For values that may have a fraction, such as seconds.
inline CLI::Validator number(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) -> std::string {
        double value = 0;
        const char* const end = text.data() + text.size();
        const auto parsed = std::from_chars(text.data(), end, value);
        const bool fits = value >= least && value <= most;  // false if the value is NaN
        if (parsed.ec == std::errc() && parsed.ptr == end && fits) return {};
        return fmt::format("{}: expected a number from {} to {}", text, least, most);
      },
      "");
}

// An empty value is an error: it is usually an unset shell variable. `what` names the value, such
// as "the address of a host".
inline CLI::Validator not_empty(const char* what) {
  return CLI::Validator(
      [what](const std::string& text) {
        return text.empty() ? fmt::format("it is empty; expected {}", what) : std::string();
      },
      "");
}

}  // namespace weft::cli
