// A check for CLI11's numbers: it takes "-1" for an unsigned one, and says ranges in 309 digits.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace weft::cli {

inline CLI::Validator whole_number(std::uint64_t least) {
  return CLI::Validator(
      [least](const std::string& text) -> std::string {
        std::uint64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto parsed = std::from_chars(text.data(), end, value);
        if (parsed.ec == std::errc() && parsed.ptr == end && value >= least) return {};
        return text + ": expected a whole number from " + std::to_string(least) + " to 2^64 - 1";
      },
      "");
}

}  // namespace weft::cli
