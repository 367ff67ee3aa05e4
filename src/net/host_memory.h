// HostMemory: the registered memory of this process. Payload is only placed inside a region, under
// its key and with its access.
//
// Keys are random, so that a stale or guessed key matches no region, and end with their
// registration. The number of regions is bounded. Not thread safe: the caller holds the lock of the
// endpoint.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "net/bulk_copy.h"
#include "world/world.h"

namespace weft::net {

class HostMemory final : public world::Memory {
 public:
  HostMemory(std::uint32_t regions_max, std::uint64_t seed);

  // Returns the key of the new region. The memory must outlive its registration. Errors:
  // kExhausted.
  Result<std::uint32_t> add(std::span<std::byte> memory, world::Access access);
  // The same for one protection domain, and with the address by which peers name the region (iova)
  // if it is not its own.
  struct Registration {
    std::span<std::byte> memory{};
    world::Access access = world::Access::kLocal;
    std::uint32_t domain = 0;
    std::uint64_t named_at = 0;
  };
  Result<std::uint32_t> add(const Registration& what);
  // False if there is no such key.
  bool remove(std::uint32_t key);

  bool region(const world::RegionQuery& query, world::Region& out) const override;
  // The location of a region, to be kept by a caller that uses it often. Valid until epoch()
  // changes.
  struct Place {
    std::uint32_t key = 0;
    std::uint64_t named_at = 0, at = 0, size = 0;
    // Whether the whole range is inside. `from` is an address as peers name it.
    bool holds(std::uint64_t from, std::uint32_t bytes) const {
      return bytes <= size && from - named_at <= size - bytes;
    }
  };
  // False: there is no such key in that domain.
  bool locate(std::uint32_t key, std::uint32_t domain, Place& out) const;
  std::uint64_t epoch() const { return epoch_; }
  void place(const world::Region& to, world::PayloadRef from) override;

 private:
  struct Entry {
    std::uint32_t key = 0;
    world::Access access = world::Access::kLocal;
    std::uint32_t domain = 0;
    std::uint64_t named_at = 0, at = 0, size = 0;
  };
  const Entry* find(std::uint32_t key) const;

  std::vector<Entry> entries_;  // sorted by key
  std::uint32_t regions_max_;
  std::uint64_t epoch_ = 1;  // changes whenever a region is added or removed
  CopyChoice copies_{CopyChoice::kReaderStay};
  std::uint64_t bulk_bytes_ = 0;  // placed so far
  Prng prng_;
};

}  // namespace weft::net
