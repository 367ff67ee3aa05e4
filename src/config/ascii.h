// A TOML text in ASCII with the same meaning: other characters become escapes in quoted strings and
// '?' in comments. toml++ 3.3 runs into undefined behaviour when it meets some of them elsewhere,
// so that it never gets to see them.
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

// A mistake: a control character, bytes that are not UTF-8, or a character outside ASCII where TOML
// has no use for it (or in a literal string, which has no escapes).
Result<std::string, TextMistake> to_ascii(std::string_view toml);

}  // namespace weft::config
