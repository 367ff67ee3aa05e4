// The packets in flight: 128 bytes each, two cache lines. Switches read only the first.
//
// Memory is taken in chunks as the run needs them, up to a bound fixed at construction. The packet
// given back last is taken next, so that the part in use stays small.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/huge_pages.h"
#include "fabric/forward.h"
#include "switch/hops.h"
#include "wire/packet.h"
#include "world/world.h"

namespace weft::sim {

struct alignas(64) Packet {
  // The fields that switches read.
  fabric::RouteKey route;
  std::uint32_t wire_size;
  switching::Transit transit;
  Time arrived;  // when it arrived at its host
  world::Dscp dscp;
  world::Ecn ecn;
  bool intact;
  std::uint8_t header_size;
  // The fields that endpoints read.
  alignas(64) std::array<std::byte, wire::kHeaderSizeMax> header;
  world::PayloadRef payload;
};
static_assert(sizeof(Packet) == 128 && std::is_trivially_copyable_v<Packet>);

class PacketPool {
 public:
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  explicit PacketPool(std::uint32_t count_max) : count_max_(count_max) {
    chunks_.reserve((count_max + kChunk - 1) / kChunk);
  }

  // Returns kNone if the bound is reached.
  std::uint32_t take() {
    if (free_.empty()) return take_fresh();
    const std::uint32_t index = free_.back();
    free_.pop_back();
    // Prefetches the packets that will be taken next, while the caller fills this one.
    constexpr std::size_t kAhead = 3;
    if (free_.size() >= kAhead) {
      const Packet& soon = (*this)[free_[free_.size() - kAhead]];
      __builtin_prefetch(&soon, 1);
      __builtin_prefetch(&soon.header, 1);
    }
    return index;
  }
  void give_back(std::uint32_t index) { free_.push_back(index); }
  Packet& operator[](std::uint32_t index) { return chunks_[index / kChunk][index % kChunk]; }
  const Packet& operator[](std::uint32_t index) const {
    return chunks_[index / kChunk][index % kChunk];
  }
  std::uint32_t in_use() const { return fresh_ - static_cast<std::uint32_t>(free_.size()); }
  std::uint64_t bytes() const {
    return std::uint64_t{fresh_} * sizeof(Packet) + free_.capacity() * 4;
  }

 private:
  static constexpr std::uint32_t kChunk = 1u << 16;  // 8 MiB

  std::uint32_t take_fresh() {
    if (fresh_ == count_max_) return kNone;
    if (fresh_ % kChunk == 0) chunks_.push_back(base::make_huge_array<Packet>(kChunk));
    return fresh_++;
  }

  std::vector<base::HugeArray<Packet>> chunks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t count_max_;
  std::uint32_t fresh_ = 0;
};

}  // namespace weft::sim
