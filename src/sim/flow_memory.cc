#include "sim/flow_memory.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.h"

namespace weft::sim {

FlowMemory::FlowMemory(MemoryKind kind, std::vector<Range> ranges, std::uint32_t host_count)
    : kind_(kind), ranges_(std::move(ranges)) {
  for (std::size_t i = 1; i < ranges_.size(); ++i)
    WEFT_ASSERT(ranges_[i - 1].base < ranges_[i].base);
  if (kind_ != MemoryKind::kNone) contents_.resize(ranges_.size());
  for (fabric::HostIndex host = 0; host < host_count; ++host) views_.emplace_back(*this, host);
}

// The content of a message: each word of eight bytes is computed from its address at the sender.
void FlowMemory::fill_pattern(std::uint64_t at, std::span<std::byte> out) {
  for (std::size_t i = 0; i < out.size();) {
    std::uint64_t word = ((at + i) >> 3) * 0x9e3779b97f4a7c15u;
    word = (word ^ word >> 32) * 0xff51afd7ed558ccdu;
    const std::size_t from = (at + i) & 7, count = std::min(8 - from, out.size() - i);
    std::array<std::byte, 8> bytes;
    std::memcpy(bytes.data(), &word, 8);
    if (count == 8) {
      std::memcpy(&out[i], bytes.data(), 8);
    } else {
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(from), count, &out[i]);
    }
    i += count;
  }
}

const FlowMemory::Range* FlowMemory::find(std::uint64_t at) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), at,
                                [](std::uint64_t a, const Range& r) { return a < r.base; });
  return after == ranges_.begin() ? nullptr : &*(after - 1);
}

bool FlowMemory::View::region(const world::RegionQuery& query, world::Region& out) const {
  if (query.key == 0 || query.key > all_->ranges_.size()) return false;
  const Range& range = all_->ranges_[query.key - 1];
  if (range.owner != host_ || query.at < range.base) return false;
  const std::uint64_t offset = query.at - range.base;
  if (offset > range.span || query.size > range.span - offset) return false;
  out = {.at = query.at, .size = query.size};
  return true;
}

void FlowMemory::View::place(const world::Region& to, world::PayloadRef from) {
  WEFT_ASSERT(to.size == from.size);
  if (all_->kind_ == MemoryKind::kNone) return;
  const Range* range = all_->find(to.at);
  WEFT_ASSERT(range != nullptr);
  Content& content = all_->contents_[static_cast<std::size_t>(range - all_->ranges_.data())];
  const std::uint64_t offset = to.at - range->base;
  if (all_->kind_ == MemoryKind::kBytes) {
    const std::uint64_t known = content.bytes.size(), end = offset + to.size;
    if (known < end) content.bytes.resize(end);
    const std::span<std::byte> bytes(content.bytes);
    if (known < offset) {
      // Bytes that are never written must not be correct by chance: the gap is filled with the
      // inverted pattern.
      const auto gap = bytes.subspan(known, offset - known);
      fill_pattern(range->base + known, gap);
      for (std::byte& b : gap) b = ~b;
    }
    fill_pattern(from.at, bytes.subspan(offset, to.size));
    return;
  }
  const auto message = static_cast<std::size_t>(offset / range->message_size);
  if (content.right.size() <= message) content.right.resize(message + 1);
  if (to.at == from.at) content.right[message] += to.size;
}

std::uint64_t FlowMemory::correct_bytes(std::uint32_t index, std::uint64_t k,
                                        std::uint32_t size) const {
  const Range& range = ranges_[index];
  const Content& content = contents_[index];
  if (kind_ == MemoryKind::kProvenance) return k < content.right.size() ? content.right[k] : 0;
  std::uint64_t right = 0;
  const std::uint64_t first = k * range.message_size;
  const std::uint64_t end = std::min<std::uint64_t>(first + size, content.bytes.size());
  std::array<std::byte, 1024> expected;
  for (std::uint64_t at = first; at < end; at += expected.size()) {
    const std::size_t count = std::min<std::uint64_t>(expected.size(), end - at);
    fill_pattern(range.base + at, std::span(expected).first(count));
    if (std::memcmp(&content.bytes[at], expected.data(), count) == 0) {
      right += count;
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) right += content.bytes[at + i] == expected[i];
  }
  return right;
}

std::uint64_t FlowMemory::bytes() const {
  std::uint64_t sum = ranges_.capacity() * sizeof(Range) + views_.size() * sizeof(View);
  for (const Content& c : contents_)
    sum += c.right.capacity() * 4 + c.bytes.capacity() + sizeof(Content);
  return sum;
}

}  // namespace weft::sim
