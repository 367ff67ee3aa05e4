// Words for people, on stderr. Where nobody can hear them (a full disk, a closed pipe) nothing else is lost: no exception.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

namespace weft::cli {

template <typename... Values>
void say(fmt::format_string<Values...> text, Values&&... values) {
  const std::string line = fmt::format(text, std::forward<Values>(values)...);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace weft::cli
