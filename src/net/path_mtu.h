// How large a packet may be on its way to a peer, as this host knows it. Reads; sends nothing.
#pragma once

#include <cstdint>

#include "base/ipv6.h"

namespace weft::net {

// The MTU from an address of ours to another: that of the interface, of the route, or what a router
// said of late. 0: there is no way, or the system does not say.
struct PathEnds {
  Ipv6 from{}, to{};
};
std::uint32_t path_mtu(const PathEnds& ends);

}  // namespace weft::net
