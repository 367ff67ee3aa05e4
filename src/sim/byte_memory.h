// ByteMemory: the registered memory of all simulated hosts, for programs that use what they receive.
//
// Addresses are made up, one range of 2^40 for each region, so that packets do not depend on where
// the heap put the bytes, and the trace hash with them. A packet refers to bytes of its sender until
// it is placed: bytes that are gone by then leave the destination as it was. Without bytes there are
// only the bounds, for the largest runs. Owned by the run; its regions are those of the hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "fabric/topology.h"
#include "world/world.h"

namespace weft::sim {

class ByteMemory {
 public:
  enum class Kind : std::uint8_t { kBoundsOnly, kBytes };
  ByteMemory(Kind kind, std::uint32_t host_count);

  struct Range {
    std::uint64_t at = 0, size = 0;
    std::uint32_t key = 0;
    std::byte* bytes = nullptr;  // null: bounds only
  };
  // Zeroed bytes that this object owns. Errors: kExhausted.
  Result<Range> allocate(fabric::HostIndex owner, std::uint64_t size);
  // The caller's bytes, which outlive the range. Errors: kExhausted.
  Result<Range> add(fabric::HostIndex owner, std::span<std::byte> bytes);
  // REQUIRES a key of a range that is there.
  void remove(std::uint32_t key);
  // Allocated bytes, of any host; null for any other key or size. The holder keeps them alive.
  std::shared_ptr<const std::byte> share(std::uint32_t key, std::uint64_t size) const;

  world::Memory& of(fabric::HostIndex host) { return views_[host]; }

 private:
  struct Held {
    fabric::HostIndex owner = 0;
    std::uint64_t size = 0;
    std::shared_ptr<std::byte> owned{};
    std::byte* bytes = nullptr;
    bool is_there = true;
  };
  class View final : public world::Memory {
   public:
    View(ByteMemory& all, fabric::HostIndex host) : all_(&all), host_(host) {}
    bool region(const world::RegionQuery& query, world::Region& out) const override;
    void place(const world::Region& to, world::PayloadRef from) override;

   private:
    ByteMemory* all_;
    fabric::HostIndex host_;
  };
  Result<Range> keep(Held held);
  // The bytes of a range of addresses; null if not all of them are there.
  std::byte* find(std::uint64_t at, std::uint64_t size) const;

  Kind kind_;
  std::vector<Held> held_;  // key - 1
  std::deque<View> views_;
};

}  // namespace weft::sim
