#include "net/held_packets.h"

#include <algorithm>
#include <cstring>

namespace weft::net {

HeldPackets::HeldPackets(std::uint32_t mtu) : mtu_(mtu) {
  for (Side& side : sides_) {
    side.datagrams.reserve(kMax);
    side.headers.resize(kMax);
    side.payloads.resize(kMax * mtu);
  }
}

bool HeldPackets::add(const world::Datagram& datagram) {
  Side& side = sides_[side_];
  const std::size_t index = side.datagrams.size();
  if (index == kMax || datagram.payload.size > mtu_) return false;
  std::byte* const header = side.headers[index].data();
  std::copy(datagram.header.begin(), datagram.header.end(), header);
  std::byte* const payload = side.payloads.data() + index * mtu_;
  if (datagram.payload.size > 0) {
    std::memcpy(payload, reinterpret_cast<const void*>(datagram.payload.at), datagram.payload.size);
  }
  world::Datagram& held = side.datagrams.emplace_back(datagram);
  held.header = ConstBytes(header, datagram.header.size());
  held.payload.at = reinterpret_cast<std::uintptr_t>(payload);
  return true;
}

std::span<const world::Datagram> HeldPackets::release() {
  const Side& released = sides_[side_];
  side_ ^= 1;
  sides_[side_].datagrams.clear();
  return released.datagrams;
}

}  // namespace weft::net
