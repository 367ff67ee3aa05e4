// CRC-32 as in Ethernet and InfiniBand: reflected polynomial 0xedb88320. The state is the raw
// register: the caller starts it at all ones and complements it at the end.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace weft::wire {

inline constexpr std::uint32_t kCrc32Polynomial = 0xedb8'8320;

// The register after `bytes`. Folds 64 bytes at a time where the processor multiplies without
// carry.
std::uint32_t crc32_update(std::uint32_t state, ConstBytes bytes);

// The same by tables only, eight bytes at a time: what other processors use, and the test's second
// opinion.
std::uint32_t crc32_update_by_table(std::uint32_t state, ConstBytes bytes);

}  // namespace weft::wire
