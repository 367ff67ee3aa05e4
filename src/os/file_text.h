// The text of a file that a person named.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace weft::os {

// `expected`: what was to be in it, for the message. Errors: kInvalid with the system's reason, or
// that it is larger than `bytes_max`. Never waits for a writer: a pipe is refused.
Result<std::string> file_text(const std::string& path, const std::string& expected,
                              std::size_t bytes_max = 64u << 20);

}  // namespace weft::os
