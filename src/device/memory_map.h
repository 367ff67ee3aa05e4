// Which uses of a range of its memory the kernel allows this process.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::device {

struct MemoryRange {
  std::uint64_t at = 0, size = 0;
};
enum class MemoryUse : std::uint8_t { kRead, kWrite };

// Pure: whether the whole range is mapped for this use, according to the text of a /proc/PID/maps.
bool is_usable(std::string_view maps, const MemoryRange& range, MemoryUse use);
// The same for this process. True if /proc cannot be read.
bool is_usable(const MemoryRange& range, MemoryUse use);

}  // namespace weft::device
