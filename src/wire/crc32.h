// CRC-32 as in Ethernet and InfiniBand: reflected polynomial 0xedb88320. The state is the raw
// register. The caller starts it with all ones and complements it at the end.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace weft::wire {

inline constexpr std::uint32_t kCrc32Polynomial = 0xedb8'8320;

// Returns the register after `bytes`. Uses carry-less multiplication where the processor has it.
std::uint32_t crc32_update(std::uint32_t state, ConstBytes bytes);

// The same with tables only, eight bytes at a time: for other processors, and for tests to compare.
std::uint32_t crc32_update_by_table(std::uint32_t state, ConstBytes bytes);

}  // namespace weft::wire
