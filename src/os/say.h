// Messages to the user, on stderr. A failure to write them (full disk, closed pipe) is ignored.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace weft::os {

template <typename... Values>
void say(fmt::format_string<Values...> text, Values&&... values) {
  const std::string line = fmt::format(text, std::forward<Values>(values)...);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// Prints the error and returns the exit status: 2 for misuse, otherwise 1.
inline int fail(const Error& error) {
  say("weft: {}\n", error.message);
  return error.kind == ErrorKind::kInvalid ? 2 : 1;
}

// Quotes a word of a command line for a shell.
inline std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace weft::os
