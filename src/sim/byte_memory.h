// ByteMemory: the registered memory of all simulated hosts, for programs that use the data they
// receive.
//
// Addresses are assigned, one range of 2^40 per region. So packets, and with them the trace hash,
// do not depend on where the heap puts the bytes. A packet refers to bytes of its sender until it
// is placed: if those bytes are gone by then, the destination is left unchanged. A region without
// bytes has only bounds, for the largest runs. Owned by the run; its regions belong to the hosts.
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
  // Adds a range of zeroed bytes that this object owns. Errors: kExhausted; kInvalid
  // from 1 TiB on.
  Result<Range> allocate(fabric::HostIndex owner, std::uint64_t size);
  // Adds the caller's bytes, which must outlive the range. Errors: as allocate().
  Result<Range> add(fabric::HostIndex owner, std::span<std::byte> bytes);
  // REQUIRES the key of an existing range.
  void remove(std::uint32_t key);
  // The bytes of an allocated range of any host; null for any other key or size. The holder keeps
  // the bytes alive.
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
  // The bytes of a range of addresses; null if not all of them exist.
  std::byte* find(std::uint64_t at, std::uint64_t size) const;

  Kind kind_;
  std::vector<Held> held_;  // index: key - 1
  std::deque<View> views_;
};

}  // namespace weft::sim
