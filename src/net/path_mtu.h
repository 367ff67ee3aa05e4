// The largest packet that reaches a peer: path_mtu() asks this host's kernel, size_that_arrives()
// probes the paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ipv6.h"

namespace weft::net {

struct PathEnds {
  Ipv6 from{}, to{};
};

// The kernel's MTU between the two ends: the smallest of the interface's, the route's, and a
// router's recent report. 0: there is no route, or the kernel does not say. Sends nothing.
std::uint32_t path_mtu(const PathEnds& ends);

// Returns the largest of `sizes` (UDP payload, in descending order) that no path refuses; the last
// size is assumed to fit. Sends packets of these sizes to a port of the peer on which no process
// listens. The ICMP answer "port unreachable" shows that the packet arrived, "packet too big" that
// it did not. Silence shows nothing, unless a smaller packet is answered at the same time. Takes at
// most about 0.6 s, and 0.2 s if nothing answers. REQUIRES that `sizes` is not empty and its sizes
// fit the interface.
std::size_t size_that_arrives(std::span<const PathEnds> paths, std::span<const std::size_t> sizes);

}  // namespace weft::net
