// The content of a file that a user named.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace weft::os {

// Returns the content of a file. Error messages say with `expected` what it should contain. Errors:
// kInvalid, with the system's reason, or because the file is larger than `bytes_max`. Pipes are
// refused, so that the call never waits for a writer.
Result<std::string> file_text(const std::string& path, const std::string& expected,
                              std::size_t bytes_max = 64u << 20);

}  // namespace weft::os
