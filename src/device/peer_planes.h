// Where the other end of a QP is, from what verbs tell of it: one GID and a QP number. Pure.
//
// The GID is the peer's address in plane 0. Its address in plane p is that address with the plane's
// bits replaced: the bits in which our own addresses differ from plane to plane. So 127.0.1.1 has
// the siblings 127.0.2.1 to 127.0.4.1 where ours are such. The process is in bits 23-16 of the QP
// number (docs/decisions/0008).
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "net/udp_world.h"
#include "transport/config.h"
#include "world/world.h"

namespace weft::device {

struct VerbsPeer {
  Ipv6 gid{};
  std::uint32_t qpn = 0;
  net::Peers kind = net::Peers::kWeft;  // kMrc: all of its QPs are behind one port
};

// Of the first process of a host, which answers for the host: requests that are for no QP go there.
inline constexpr std::uint32_t kHostQpn = 0x100;

// `first_psn` is left to the caller. Errors: kInvalid in one line, when the GID is in no plane of ours.
Result<transport::PeerInfo> peer_planes(std::span<const world::Address> ours,
                                        const VerbsPeer& peer);

}  // namespace weft::device
