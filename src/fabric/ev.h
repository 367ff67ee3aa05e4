// EVs as the transport sees them, and which EVs lead over which path.
//
// An EV is 32 bits that travel in the UDP source port and flow label and come back in SACKs; the
// engine treats them as opaque. With SRv6 the value is plane << 24 | path; the world expands it to
// the uSID list. With STEV the bits are hop fields. With hashed forwarding any value will do.
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

// An EV that leads over this path from `from` to `to`. REQUIRES SRv6 or STEV (no hash can be
// chosen), path < path_count.
Ev ev_for_path(const Topology& topology, Forwarding mode, std::uint32_t plane, HostIndex from,
               HostIndex to, std::uint32_t path);
// The path of an SRv6 EV between two hosts (value's low 24 bits modulo path_count: hosts that share
// a T0 have one path).
std::uint32_t path_of_ev(const Topology& topology, HostIndex from, HostIndex to, std::uint32_t ev);

// `count_per_plane` EVs in each plane, in an order that interleaves planes; paths drawn at random
// without repetition until all of a plane's paths are in use, then again. A path that is in use
// again gets another value (another multiple of path_count in SRv6, spare low bits in STEV), so
// that an echoed EV names one entry, as far as the spare bits reach. Hashed mode draws 32-bit
// values (the plane in no bit).
std::vector<Ev> draw_evs(const Topology& topology, Forwarding mode, HostIndex from, HostIndex to,
                         std::uint32_t count_per_plane, Prng& prng);

}  // namespace weft::fabric
