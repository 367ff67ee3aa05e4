// How large a packet may be on its way to a peer: as this host knows it, and as the way itself says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ipv6.h"

namespace weft::net {

struct PathEnds {
  Ipv6 from{}, to{};
};

// The MTU from an address of ours to another: that of the interface, of the route, or what a router
// said of late. 0: there is no way, or the system does not say. Sends nothing.
std::uint32_t path_mtu(const PathEnds& ends);

// The largest of these sizes (of what UDP carries, largest first) that no way refuses; the last is
// taken on trust. Sends packets of these sizes to a port of the peer that nobody has: the answer
// "no such port" says that one arrived, "too big" that it did not, and silence nothing, unless a
// smaller packet is answered at the same time. At most some 0.6 s, where nobody answers 0.2 s.
// REQUIRES sizes that are not empty and fit the interface.
std::size_t size_that_arrives(std::span<const PathEnds> ways, std::span<const std::size_t> sizes);

}  // namespace weft::net
