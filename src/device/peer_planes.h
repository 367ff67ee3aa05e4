// Computes the addresses of a QP's peer from what verbs give: one GID and a QP number. Pure.
//
// The GID is the peer's address in one plane, usually plane 0. To get the address in plane p, the
// bits that distinguish planes are replaced. These are the bits in which our own addresses differ
// between planes: if our addresses are 127.0.1.x to 127.0.4.x, then the peer 127.0.1.1 also has
// 127.0.2.1 to 127.0.4.1. Bits 23-16 of the QP number identify the process (docs/decisions/0008).
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

// The QP number of a host's first process. That process answers endpoint requests.
inline constexpr std::uint32_t kHostQpn = 0x100;

// The caller sets `first_psn` in the result. Errors: kInvalid with a one-line message, if the GID
// is in none of our planes.
Result<transport::PeerInfo> peer_planes(std::span<const world::Address> ours,
                                        const VerbsPeer& peer);

}  // namespace weft::device
