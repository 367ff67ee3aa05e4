// Words for people, on stderr. Where nobody can hear them (a full disk, a closed pipe) nothing else
// is lost: no exception.
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

// Says what went wrong; gives the exit status: 2 is misuse.
inline int fail(const Error& error) {
  say("weft: {}\n", error.message);
  return error.kind == ErrorKind::kInvalid ? 2 : 1;
}

// A word of a command line as a shell reads it back.
inline std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace weft::os
