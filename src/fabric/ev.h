// EVs as the transport sees them, and the path that each EV names.
//
// An EV is 32 bits that travel in the UDP source port and flow label and return in SACKs. The
// transport does not interpret them. With SRv6 the value is plane << 24 | path, and the world
// expands it to a uSID list. With STEV the bits are one field per tier of switches. With hashed
// forwarding every value is valid.
#pragma once

#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "fabric/forward.h"
#include "fabric/topology.h"

namespace weft::fabric {

// An EV and the port (plane) that it belongs to.
struct Ev {
  std::uint32_t value = 0;
  std::uint8_t port = 0;
  friend bool operator==(const Ev&, const Ev&) = default;
};

// The EV of this path from `from` to `to`. REQUIRES SRv6 or STEV (with hashed forwarding a path
// cannot be chosen), path < path_count.
Ev ev_for_path(const Topology& topology, Forwarding mode, std::uint32_t plane, HostIndex from,
               HostIndex to, std::uint32_t path);
// The path of an SRv6 EV between two hosts: the low 24 bits of the value modulo path_count.
std::uint32_t path_of_ev(const Topology& topology, HostIndex from, HostIndex to, std::uint32_t ev);

// Draws `count_per_plane` EVs in each plane, in an order that interleaves the planes. Each plane
// uses all its paths in random order before it repeats one. A repeated path gets a different value
// (another multiple of path_count in SRv6, other spare low bits in STEV), so that an echoed EV
// identifies one entry as long as there are spare bits. Hashed mode draws random 32-bit values, in
// which no bit names the plane.
std::vector<Ev> draw_evs(const Topology& topology, Forwarding mode, HostIndex from, HostIndex to,
                         std::uint32_t count_per_plane, Prng& prng);

}  // namespace weft::fabric
