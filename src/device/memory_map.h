// Checks whether the kernel allows this process to read or write a range of its memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::device {

struct MemoryRange {
  std::uint64_t at = 0, size = 0;
};
enum class MemoryUse : std::uint8_t { kRead, kWrite };

// Pure. `maps` is the text of a /proc/PID/maps. True if the whole range is mapped for this use.
bool is_usable(std::string_view maps, const MemoryRange& range, MemoryUse use);
// As above, with the maps of this process. True if /proc cannot be read.
bool is_usable(const MemoryRange& range, MemoryUse use);

}  // namespace weft::device
