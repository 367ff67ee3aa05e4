// The file with the job secret: one that only its owner may read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace weft::settings {

// All of the file, 32 to 4096 bytes of any kind. Errors: kInvalid, in one line with what mends it.
Result<std::vector<std::byte>> read_secret_file(const std::string& path);

}  // namespace weft::settings
