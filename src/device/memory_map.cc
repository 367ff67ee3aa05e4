#include "device/memory_map.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace weft::device {
namespace {

// Takes a hexadecimal number and the character after it off the front of `text`.
std::uint64_t take_hex(std::string_view& text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const auto used = static_cast<std::size_t>(parsed.ptr - text.data());
  text.remove_prefix(std::min(used + 1, text.size()));
  return value;
}

}  // namespace

// Example of a line: "7f00-7f10 rw-p 0 00:00 0 name". Lines are sorted by address.
bool is_usable(std::string_view maps, const MemoryRange& range, MemoryUse use) {
  std::uint64_t at = range.at;
  const std::uint64_t end = range.at + range.size;
  while (at < end && !maps.empty()) {
    std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    const std::uint64_t from = take_hex(line), to = take_hex(line);
    if (to <= at) continue;
    const bool allowed =
        line.size() >= 2 && line[0] == 'r' && (use == MemoryUse::kRead || line[1] == 'w');
    if (from > at || !allowed) return false;
    at = to;
  }
  return at >= end;
}

bool is_usable(const MemoryRange& range, MemoryUse use) {
  std::ifstream in("/proc/self/maps", std::ios::binary);
  if (!in) return true;
  const std::string maps((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return is_usable(maps, range, use);
}

}  // namespace weft::device
