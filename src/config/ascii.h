// Converts a TOML text to ASCII with the same meaning: characters outside ASCII become escapes in
// quoted strings and '?' in comments. The TOML library, toml++ 3.3, has undefined behaviour for
// some of these characters, so it must not see them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/document.h"

namespace weft::config {

struct TextMistake {
  Position at;
  std::string what;
};

// Errors: a control character, bytes that are not UTF-8, or a character outside ASCII where it
// cannot be escaped (outside strings, or in a literal string).
Result<std::string, TextMistake> to_ascii(std::string_view toml);

}  // namespace weft::config
