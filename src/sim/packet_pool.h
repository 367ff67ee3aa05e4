// The packets under way: 128 bytes each, two cache lines. Switches look at the first only.
//
// One flat array with a bound fixed at construction; memory is touched as far as the run needs it. The last packet given back
// is the next one taken, so the busy part stays small.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "base/assert.h"
#include "fabric/forward.h"
#include "wire/packet.h"
#include "world/world.h"

namespace weft::sim {

struct alignas(64) Packet {
  // What switches look at.
  fabric::RouteKey route;
  std::uint32_t wire_size;
  fabric::LinkId via;             // the link it is on
  std::uint32_t via_epoch;        // that link's, when it was sent
  std::int64_t extra_delay_ps;    // a fault delays it
  world::Dscp dscp;
  world::Ecn ecn;
  bool intact;
  std::uint8_t header_size;
  // What the endpoints look at.
  alignas(64) std::array<std::byte, wire::kHeaderSizeMax> header;
  world::PayloadRef payload;
};
static_assert(sizeof(Packet) == 128 && std::is_trivially_copyable_v<Packet>);

class PacketPool {
 public:
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  explicit PacketPool(std::uint32_t count_max)
      : packets_(static_cast<Packet*>(std::aligned_alloc(64, sizeof(Packet) * std::size_t{count_max}))),
        count_max_(count_max) {
    WEFT_ASSERT(packets_ != nullptr);
  }

  // kNone when the bound is reached.
  std::uint32_t take() {
    if (free_ != kNone) {
      const std::uint32_t index = free_;
      free_ = packets_[index].via;
      ++in_use_;
      return index;
    }
    if (fresh_ == count_max_) return kNone;
    ++in_use_;
    return fresh_++;
  }
  void give_back(std::uint32_t index) {
    packets_[index].via = free_;
    free_ = index;
    --in_use_;
  }
  Packet& operator[](std::uint32_t index) { return packets_[index]; }
  const Packet* data() const { return packets_.get(); }
  std::uint32_t in_use() const { return in_use_; }
  std::uint64_t bytes() const { return std::uint64_t{fresh_} * sizeof(Packet); }

 private:
  struct Free {
    void operator()(Packet* p) const { std::free(p); }
  };
  std::unique_ptr<Packet[], Free> packets_;
  std::uint32_t count_max_;
  std::uint32_t fresh_ = 0, in_use_ = 0;
  std::uint32_t free_ = kNone;
};

}  // namespace weft::sim
