// HostMemory: the registered memory of this process. Payload is placed only inside a region, with
// the key of the region and if its access allows.
//
// Keys are random, so that a stale or guessed key matches no region, and become invalid with their
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
  // add() for one protection domain. `iova` is the address by which peers name the region, if it
  // differs from its own.
  struct Registration {
    std::span<std::byte> memory{};
    world::Access access = world::Access::kLocal;
    std::uint32_t domain = 0;
    std::uint64_t named_at = 0;
  };
  Result<std::uint32_t> add(const Registration& what);
  // Removes the region with this key. False: there is no such key.
  bool remove(std::uint32_t key);

  bool region(const world::RegionQuery& query, world::Region& out) const override;
  // The location of a region. A caller that uses the region often keeps it; it is valid until
  // epoch() changes.
  struct Place {
    std::uint32_t key = 0;
    std::uint64_t named_at = 0, at = 0, size = 0;
    // Whether the whole range lies in the region. `from` is an address as peers name it.
    bool holds(std::uint64_t from, std::uint32_t bytes) const {
      return bytes <= size && from - named_at <= size - bytes;
    }
  };
  // Looks up the region of a key. False: the domain has no such key.
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
  std::uint64_t epoch_ = 1;  // changes when a region is added or removed
  CopyChoice copies_{CopyChoice::kReaderStay};
  std::uint64_t bulk_bytes_ = 0;  // bytes placed so far by copy_bulk()
  Prng prng_;
};

}  // namespace weft::net
