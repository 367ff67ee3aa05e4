#include "net/host_memory.h"

#include <algorithm>
#include <cstring>

#include "os/clock.h"

namespace weft::net {

HostMemory::HostMemory(std::uint32_t regions_max, std::uint64_t seed)
    : regions_max_(regions_max), prng_(seed) {
  entries_.reserve(regions_max);
}

const HostMemory::Entry* HostMemory::find(std::uint32_t key) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), key,
                                   [](const Entry& e, std::uint32_t k) { return e.key < k; });
  return at != entries_.end() && at->key == key ? &*at : nullptr;
}

Result<std::uint32_t> HostMemory::add(std::span<std::byte> memory, world::Access access) {
  return add({.memory = memory,
              .access = access,
              .named_at = reinterpret_cast<std::uintptr_t>(memory.data())});
}

Result<std::uint32_t> HostMemory::add(const Registration& what) {
  if (entries_.size() == regions_max_) {
    return Error{ErrorKind::kExhausted,
                 "no region left: the bound of registered regions is reached"};
  }
  std::uint32_t key = 0;
  while (key == 0 || find(key) != nullptr) key = static_cast<std::uint32_t>(prng_.next() >> 32);
  const Entry entry{.key = key,
                    .access = what.access,
                    .domain = what.domain,
                    .named_at = what.named_at,
                    .at = reinterpret_cast<std::uintptr_t>(what.memory.data()),
                    .size = what.memory.size()};
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), key,
                                   [](const Entry& e, std::uint32_t k) { return e.key < k; });
  entries_.insert(at, entry);
  ++epoch_;
  return key;
}

bool HostMemory::remove(std::uint32_t key) {
  const Entry* const entry = find(key);
  if (entry == nullptr) return false;
  entries_.erase(entries_.begin() + (entry - entries_.data()));
  ++epoch_;
  return true;
}

bool HostMemory::region(const world::RegionQuery& query, world::Region& out) const {
  const Entry* const entry = find(query.key);
  if (entry == nullptr) return false;
  if (query.access == world::Access::kRemoteWrite && entry->access != world::Access::kRemoteWrite)
    return false;
  if (query.domain != entry->domain || query.at < entry->named_at) return false;
  const std::uint64_t offset = query.at - entry->named_at;
  if (offset > entry->size || query.size > entry->size - offset) return false;
  out = {.at = entry->at + offset, .size = query.size};
  return true;
}

bool HostMemory::locate(std::uint32_t key, std::uint32_t domain, Place& out) const {
  const Entry* const entry = find(key);
  if (entry == nullptr || entry->domain != domain) return false;
  out = {.key = key, .named_at = entry->named_at, .at = entry->at, .size = entry->size};
  return true;
}

void HostMemory::place(const world::Region& to, world::PayloadRef from) {
  auto* const target = reinterpret_cast<std::byte*>(to.at);
  const auto* const source = reinterpret_cast<const std::byte*>(from.at);
  if (from.size < kBulkMin) {
    std::memcpy(target, source, from.size);
    return;
  }
  copies_.look(os::clock_now(), bulk_bytes_);
  copy_bulk(copies_.routine(), target, source, from.size);
  bulk_bytes_ += from.size;
}

}  // namespace weft::net
