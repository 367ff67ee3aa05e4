#include "sim/byte_memory.h"

#include <cstdlib>
#include <cstring>

#include "base/assert.h"

namespace weft::sim {
namespace {

constexpr int kRangeBits = 40;
constexpr std::uint64_t kRangeMax = 1ull << kRangeBits;
constexpr std::size_t kRangesMax = 1u << 23;

constexpr std::uint64_t base_of(std::uint32_t key) { return std::uint64_t{key} << kRangeBits; }

}  // namespace

ByteMemory::ByteMemory(Kind kind, std::uint32_t host_count) : kind_(kind) {
  for (fabric::HostIndex host = 0; host < host_count; ++host) views_.emplace_back(*this, host);
}

Result<ByteMemory::Range> ByteMemory::keep(Held held) {
  if (held.size >= kRangeMax)
    return Error{ErrorKind::kInvalid, "a simulated region has less than 1 TiB"};
  if (held_.size() == kRangesMax)
    return Error{ErrorKind::kExhausted, "a simulated memory has at most 8 Mi regions"};
  held_.push_back(std::move(held));
  const auto key = static_cast<std::uint32_t>(held_.size());
  return Range{
      .at = base_of(key), .size = held_.back().size, .key = key, .bytes = held_.back().bytes};
}

Result<ByteMemory::Range> ByteMemory::allocate(fabric::HostIndex owner, std::uint64_t size) {
  Held held{.owner = owner, .size = size};
  if (kind_ == Kind::kBytes && size < kRangeMax) {
    // calloc: pages that nobody writes to take no memory.
    held.owned = {static_cast<std::byte*>(std::calloc(size == 0 ? 1 : size, 1)), &std::free};
    if (held.owned == nullptr) return Error{ErrorKind::kExhausted, "no memory for a region"};
    held.bytes = held.owned.get();
  }
  return keep(std::move(held));
}

Result<ByteMemory::Range> ByteMemory::add(fabric::HostIndex owner, std::span<std::byte> bytes) {
  return keep({.owner = owner,
               .size = bytes.size(),
               .bytes = kind_ == Kind::kBytes ? bytes.data() : nullptr});
}

void ByteMemory::remove(std::uint32_t key) {
  WEFT_ASSERT(key != 0 && key <= held_.size() && held_[key - 1].is_there);
  held_[key - 1].is_there = false;
  held_[key - 1].bytes = nullptr;
  held_[key - 1].owned.reset();
}

std::shared_ptr<const std::byte> ByteMemory::share(std::uint32_t key, std::uint64_t size) const {
  if (key == 0 || key > held_.size() || held_[key - 1].size != size) return nullptr;
  return held_[key - 1].owned;
}

std::byte* ByteMemory::find(std::uint64_t at, std::uint64_t size) const {
  const std::uint64_t key = at >> kRangeBits, offset = at & (kRangeMax - 1);
  if (key == 0 || key > held_.size()) return nullptr;
  const Held& held = held_[key - 1];
  if (held.bytes == nullptr || offset > held.size || size > held.size - offset) return nullptr;
  return held.bytes + offset;
}

bool ByteMemory::View::region(const world::RegionQuery& query, world::Region& out) const {
  if (query.key == 0 || query.key > all_->held_.size()) return false;
  const Held& held = all_->held_[query.key - 1];
  if (!held.is_there || held.owner != host_ || query.at < base_of(query.key)) return false;
  const std::uint64_t offset = query.at - base_of(query.key);
  if (offset > held.size || query.size > held.size - offset) return false;
  out = {.at = query.at, .size = query.size};
  return true;
}

void ByteMemory::View::place(const world::Region& to, world::PayloadRef from) {
  WEFT_ASSERT(to.size == from.size);
  if (all_->kind_ == Kind::kBoundsOnly || to.size == 0) return;
  const std::byte* const source = all_->find(from.at, from.size);
  std::byte* const target = all_->find(to.at, to.size);
  if (source != nullptr && target != nullptr) std::memmove(target, source, to.size);
}

}  // namespace weft::sim
