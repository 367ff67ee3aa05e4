// The addresses of a QP's peer, from what verbs tell: one GID and a QP number. Pure.
//
// The GID is the peer's address in one plane, usually plane 0. Its address in plane p is that
// address with the plane's bits replaced. The plane's bits are those in which our own addresses
// differ from plane to plane: if ours are 127.0.1.x to 127.0.4.x, then the peer 127.0.1.1 also has
// 127.0.2.1 to 127.0.4.1. Bits 23-16 of the QP number name the process (docs/decisions/0008).
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
  wire::PeerKind kind = wire::PeerKind::kSoftware;  // kMrc: one UDP port serves all QPs of the peer
};

// The QP number of a host's first process, which answers requests that are for no QP.
inline constexpr std::uint32_t kHostQpn = 0x100;

// The caller sets `first_psn`. Errors: kInvalid in one line, if the GID is in none of our planes.
Result<transport::PeerInfo> peer_planes(std::span<const world::Address> ours,
                                        const VerbsPeer& peer);

}  // namespace weft::device
