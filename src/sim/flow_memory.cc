#include "sim/flow_memory.h"

#include <algorithm>

#include "base/assert.h"

namespace weft::sim {

FlowMemory::FlowMemory(MemoryKind kind, std::vector<Range> ranges, std::uint32_t host_count)
    : kind_(kind), ranges_(std::move(ranges)) {
  for (std::size_t i = 1; i < ranges_.size(); ++i)
    WEFT_ASSERT(ranges_[i - 1].base < ranges_[i].base);
  if (kind_ != MemoryKind::kNone) contents_.resize(ranges_.size());
  for (fabric::HostIndex host = 0; host < host_count; ++host) views_.emplace_back(*this, host);
}

// A byte of a message, made from where it lies at the sender.
std::byte FlowMemory::pattern(std::uint64_t at) {
  const std::uint64_t mixed = (at ^ at >> 33) * 0xff51afd7ed558ccdu;
  return static_cast<std::byte>(mixed >> 56);
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
    if (content.bytes.size() < offset + to.size) content.bytes.resize(offset + to.size);
    for (std::uint32_t i = 0; i < to.size; ++i) content.bytes[offset + i] = pattern(from.at + i);
    return;
  }
  const auto message = static_cast<std::size_t>(offset / range->message_size);
  if (content.right.size() <= message) content.right.resize(message + 1);
  if (to.at == from.at) content.right[message] += to.size;
}

std::uint64_t FlowMemory::right_bytes(std::uint32_t index, std::uint64_t k,
                                      std::uint32_t size) const {
  const Range& range = ranges_[index];
  const Content& content = contents_[index];
  if (kind_ == MemoryKind::kProvenance) return k < content.right.size() ? content.right[k] : 0;
  std::uint64_t right = 0;
  const std::uint64_t first = k * range.message_size;
  for (std::uint64_t i = first; i < first + size && i < content.bytes.size(); ++i) {
    right += content.bytes[i] == pattern(range.base + i);
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
