// What this process may do with a range of its memory, as the kernel says.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::device {

struct MemoryRange {
  std::uint64_t at = 0, size = 0;
};
enum class MemoryUse : std::uint8_t { kRead, kWrite };

// Pure: whether all of the range is mapped for this use, by the text of a /proc/PID/maps.
bool is_usable(std::string_view maps, const MemoryRange& range, MemoryUse use);
// The same for this process. True where there is no /proc to ask.
bool is_usable(const MemoryRange& range, MemoryUse use);

}  // namespace weft::device
