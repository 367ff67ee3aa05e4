// The file with the job secret; only its owner may read it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace weft::settings {

// The whole file: 32 to 4096 bytes with any values. Errors: kInvalid, in one line that says what to
// do.
Result<std::vector<std::byte>> read_secret_file(const std::string& path);

}  // namespace weft::settings
