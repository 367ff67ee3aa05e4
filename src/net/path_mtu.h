// The largest packet that reaches a peer: as this host knows it, and as the path itself reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ipv6.h"

namespace weft::net {

struct PathEnds {
  Ipv6 from{}, to{};
};

// The MTU from a local address to another: of the interface, of the route, or as a router recently
// reported. 0: there is no route, or the system does not say. Sends nothing.
std::uint32_t path_mtu(const PathEnds& ends);

// The largest of these sizes (UDP payload, largest first) that no path refuses; the last size is
// not tested. Sends packets of these sizes to a port of the peer on which no process listens. The
// ICMP answer "port unreachable" shows that the packet arrived, "too big" that it did not. Silence
// shows nothing, unless a smaller packet is answered at the same time. Takes at most about 0.6 s,
// and 0.2 s if nothing answers. REQUIRES that `sizes` is not empty and its sizes fit the interface.
std::size_t size_that_arrives(std::span<const PathEnds> ways, std::span<const std::size_t> sizes);

}  // namespace weft::net
