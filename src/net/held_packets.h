// HeldPackets: packets of one plane that the kernel did not accept yet. Header and payload are
// copied, because their memory may be reused before the socket has room.
//
// At most kMax packets. Allocates at construction only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/packet.h"
#include "world/world.h"

namespace weft::net {

class HeldPackets {
 public:
  static constexpr std::size_t kMax = 32;

  // `mtu`: the largest payload.
  explicit HeldPackets(std::uint32_t mtu);

  bool is_empty() const { return sides_[side_].datagrams.empty(); }
  std::size_t count() const { return sides_[side_].datagrams.size(); }
  // False: there is no room for this packet, and it is lost.
  bool add(const world::Datagram& datagram);
  // Removes all packets and returns them in the order of add(). They are valid until the next
  // release(); packets that still cannot be sent may be added again meanwhile.
  std::span<const world::Datagram> release();
  void clear() { sides_[side_].datagrams.clear(); }

 private:
  // Two sides in turn: add() copies into one side while release() has given out the other.
  struct Side {
    std::vector<world::Datagram> datagrams;
    std::vector<std::array<std::byte, wire::kHeaderSizeMax>> headers;
    std::vector<std::byte> payloads;  // kMax payloads of one MTU each
  };

  std::uint32_t mtu_;
  std::array<Side, 2> sides_{};
  std::size_t side_ = 0;
};

}  // namespace weft::net
