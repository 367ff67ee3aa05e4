// Converts a CtlModel to the bytes of a file, and back.
//
// Big-endian. In order: magic (8 bytes), version (4), size of the body (4), CRC-32 of the body (4),
// body. The bytes of a file are not trusted until parsed: the result is either a model that
// check_model() accepts, or one line that says why there is none. Writing a model that was read
// gives the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "control/ctl_model.h"

namespace weft::control {

inline constexpr std::uint32_t kCtlFileVersion = 1;
inline constexpr std::size_t kCtlFileHeaderBytes = 20;
// The size of a file in which all profiles are full. A larger file is refused.
inline constexpr std::size_t kCtlFileBytesMax = 4u << 20;

std::vector<std::byte> to_bytes(const CtlModel& model);
Result<CtlModel> ctl_model_from(ConstBytes bytes);

// Puts a valid header (magic, version, size, checksum) before `body`; for tests and fuzzers.
std::vector<std::byte> with_ctl_header(ConstBytes body);

}  // namespace weft::control
