// Converts a CtlModel to the bytes of a file, and back.
//
// Big-endian. Magic (8), version (4), size of the body (4), CRC-32 of the body (4), the body. The
// bytes of a file are hostile until parsed: the result is either a model that check_model accepts,
// or one line that says why not. Writing a model that was read gives the same bytes.
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
// The size with all profiles full; a larger file is refused.
inline constexpr std::size_t kCtlFileBytesMax = 4u << 20;

std::vector<std::byte> to_bytes(const CtlModel& model);
Result<CtlModel> ctl_model_from(ConstBytes bytes);

// Puts magic, version, size and checksum before this body, for tests and fuzzers.
std::vector<std::byte> with_ctl_header(ConstBytes body);

}  // namespace weft::control
