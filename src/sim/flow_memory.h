// FlowMemory: the memory of all simulated hosts, as ranges that flows are written to.
//
// A range is registered at one host under one key; a write is right when it comes from the same
// address at the sender as it goes to here. Three kinds: none keeps only the bounds (the largest
// runs), provenance counts for each message the bytes that came from the right place, bytes keeps
// real bytes, made from the source address, and compares them at the end.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "fabric/topology.h"
#include "world/world.h"

namespace weft::sim {

enum class MemoryKind : std::uint8_t { kNone, kProvenance, kBytes };

class FlowMemory {
 public:
  struct Range {
    fabric::HostIndex owner = 0;
    std::uint64_t base = 0, span = 0;
    std::uint32_t message_size = 0;  // a range is read back in pieces of this
  };
  // `ranges[i]` is registered under key i + 1.
  FlowMemory(MemoryKind kind, std::vector<Range> ranges, std::uint32_t host_count);

  world::Memory& of(fabric::HostIndex host) { return views_[host]; }
  // Of message `k` of range `index`, which has `size` bytes: how many are in place and right.
  std::uint64_t right_bytes(std::uint32_t index, std::uint64_t k, std::uint32_t size) const;
  std::uint64_t bytes() const;

 private:
  class View final : public world::Memory {
   public:
    View(FlowMemory& all, fabric::HostIndex host) : all_(&all), host_(host) {}
    bool region(const world::RegionQuery& query, world::Region& out) const override;
    void place(const world::Region& to, world::PayloadRef from) override;

   private:
    FlowMemory* all_;
    fabric::HostIndex host_;
  };
  struct Content {
    std::vector<std::uint32_t>
        right;  // provenance: bytes of each message that came from the right place
    std::vector<std::byte> bytes;  // from the range's base on
  };
  const Range* find(std::uint64_t at) const;
  static void fill_pattern(std::uint64_t at, std::span<std::byte> out);

  MemoryKind kind_;
  std::vector<Range> ranges_;      // ascending by base
  std::vector<Content> contents_;  // empty for kNone
  std::deque<View> views_;
};

}  // namespace weft::sim
