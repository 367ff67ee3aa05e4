// FlowMemory: the memory of all simulated hosts, as ranges into which flows write.
//
// A range is registered at one host under one key. A write is correct if its address at the sender
// equals its address here. There are three kinds. kNone keeps only the bounds, for the largest
// runs. kProvenance counts for each message the bytes that came from the correct address. kBytes
// keeps real bytes, which are computed from the source address, and compares them at the end.
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
    std::uint32_t message_size = 0;  // messages of this size fill the range one after another
  };
  // `ranges[i]` is registered under key i + 1.
  FlowMemory(MemoryKind kind, std::vector<Range> ranges, std::uint32_t host_count);

  world::Memory& of(fabric::HostIndex host) { return views_[host]; }
  // The bytes of message `k` of range `index` that are in place and correct. The message has `size`
  // bytes.
  std::uint64_t correct_bytes(std::uint32_t index, std::uint64_t k, std::uint32_t size) const;
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
        right;  // kProvenance: bytes of each message that came from the correct address
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
