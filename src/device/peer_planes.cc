#include "device/peer_planes.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/assert.h"
#include "os/interfaces.h"
#include "wire/packet.h"

namespace weft::device {

Result<transport::PeerInfo> peer_planes(std::span<const world::Address> ours,
                                        const VerbsPeer& peer) {
  WEFT_ASSERT(!ours.empty() && ours.size() <= world::kPortsMax);
  Ipv6 field;
  for (const world::Address& address : ours) {
    field.high |= address.high ^ ours[0].high;
    field.low |= address.low ^ ours[0].low;
  }
  // A program may name the peer by the GID of any of the peer's ports.
  const bool known = std::any_of(ours.begin(), ours.end(), [&](const world::Address& plane) {
    return ((peer.gid.high ^ plane.high) & field.high) == 0 &&
           ((peer.gid.low ^ plane.low) & field.low) == 0;
  });
  if (!known) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("the peer's GID {} is in no plane of ours ({} and others); its "
                             "addresses there cannot be derived. Give all hosts addresses that "
                             "differ between planes in the same bits",
                             os::text_of(peer.gid), os::text_of(ours[0].ip()))};
  }
  if ((peer.qpn & ~wire::kQpnMask) != 0 || peer.qpn <= wire::kEndpointQpn)
    return Error{ErrorKind::kInvalid, fmt::format("{:#x} is no QP number", peer.qpn)};
  transport::PeerInfo info;
  const auto process =
      static_cast<std::uint16_t>(peer.kind == wire::PeerKind::kSoftware ? peer.qpn >> 16 : 0);
  for (std::size_t p = 0; p < info.ports.size(); ++p) {
    const world::Address& plane = ours[p < ours.size() ? p : 0];
    info.ports[p] = {.high = (peer.gid.high & ~field.high) | (plane.high & field.high),
                     .low = (peer.gid.low & ~field.low) | (plane.low & field.low),
                     .process = process};
  }
  info.qpn = peer.qpn;
  return info;
}

}  // namespace weft::device
