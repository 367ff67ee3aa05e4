// UdpWorld, paths: what is known of the ways to a peer before anything is sent.
#include <algorithm>

#include "net/interfaces.h"
#include "net/network_namespace.h"
#include "net/path_mtu.h"
#include "net/secure_layout.h"
#include "net/udp_world.h"

namespace weft::net {

std::uint32_t UdpWorld::payload_to(std::span<const world::Address> peer) const {
  constexpr std::uint32_t kPayloadMax = 4096;
  const auto scope = NamespaceScope::enter(config_.network_namespace);
  const auto interfaces = list_interfaces();
  std::uint32_t payload = kPayloadMax;
  for (const fabric::Ev& ev : evs()) {
    if (ev.port >= peer.size()) continue;
    const Ipv6& from = planes_[ev.port].address;
    const Ipv6 to = steering_->way(process_, ev.port, ev.value, peer[ev.port].ip()).to;
    std::uint32_t mtu = path_mtu({.from = from, .to = to});
    // A plane that is down has no way just now, but will be used when it is up.
    if (const Interface* on = interfaces ? interface_of(from, *interfaces) : nullptr;
        on != nullptr && on->mtu != 0) {
      mtu = mtu == 0 ? on->mtu : std::min(mtu, on->mtu);
    }
    if (mtu == 0) continue;
    const std::size_t ip_size = is_ipv4(from)                   ? 20
                                : srv6_form() == Srv6Form::kMrc ? 2 * wire::kIpv6Size
                                                                : wire::kIpv6Size;
    const std::uint32_t fits =
        payload_that_fits({.path_mtu = mtu, .ip_size = ip_size, .secured = sessions_ != nullptr});
    payload = std::min(payload, fits);
  }
  return payload;
}

}  // namespace weft::net
