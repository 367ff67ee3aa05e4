// UdpWorld, path MTU: how large packets to a peer may be.
#include <algorithm>

#include "net/path_mtu.h"
#include "net/udp_world.h"
#include "os/interfaces.h"
#include "os/network_namespace.h"
#include "seal/secure_layout.h"

namespace weft::net {
namespace {

// The minimum MTU of IPv6, which today's IPv4 links have too. A smaller reported value is not
// believed, because ICMP is not authenticated.
constexpr std::uint32_t kPathMtuMin = 1280;

}  // namespace

std::uint32_t UdpWorld::payload_to(std::span<const world::Address> peer) const {
  std::uint32_t payload = seal::kPayloads[0];
  const auto scope = os::NamespaceScope::enter(config_.network_namespace);
  if (!scope) return payload;  // nothing is known about the paths
  const auto interfaces = os::list_interfaces();
  for (const fabric::Ev& ev : evs()) {
    if (ev.port >= peer.size()) continue;
    const Ipv6& from = planes_[ev.port].address;
    const Ipv6 to = steering_->way(process_, ev.port, ev.value, peer[ev.port].ip()).to;
    std::uint32_t mtu = path_mtu({.from = from, .to = to});
    if (mtu != 0) mtu = std::max(mtu, kPathMtuMin);
    // A plane that is down has no route now, but will be used when it is up.
    if (const os::Interface* on = interfaces ? os::interface_of(from, *interfaces) : nullptr;
        on != nullptr && on->mtu != 0) {
      mtu = mtu == 0 ? on->mtu : std::min(mtu, on->mtu);
    }
    if (mtu == 0) continue;
    const std::size_t ip_size = base::is_ipv4(from)             ? 20
                                : srv6_form() == Srv6Form::kMrc ? 2 * wire::kIpv6Size
                                                                : wire::kIpv6Size;
    const std::uint32_t fits = seal::payload_that_fits(
        {.path_mtu = mtu, .ip_size = ip_size, .secured = sessions_ != nullptr});
    payload = std::min(payload, fits);
  }
  return payload;
}

std::uint32_t UdpWorld::payload_that_arrives(std::span<const world::Address> peer) const {
  const std::uint32_t fits = payload_to(peer);
  // With uSIDs, routers' reports name other addresses than ours.
  if (fits <= seal::kPayloads.back() || config_.ev_mode == EvMode::kSrv6) return fits;
  const auto scope = os::NamespaceScope::enter(config_.network_namespace);
  const auto interfaces = os::list_interfaces();
  if (!scope || !interfaces) return fits;
  std::vector<PathEnds> ways;
  for (std::size_t p = 0; p < planes_.size() && p < peer.size(); ++p) {
    // No network lies between two addresses of this host.
    if (os::interface_of(peer[p].ip(), *interfaces) != nullptr || base::is_loopback(peer[p].ip()))
      continue;
    ways.push_back({.from = planes_[p].address, .to = peer[p].ip()});
  }
  std::vector<std::uint32_t> payloads;
  std::vector<std::size_t> sizes;
  for (const std::uint32_t payload : seal::kPayloads) {
    if (payload > fits) continue;
    payloads.push_back(payload);
    sizes.push_back(seal::write_size_max({.payload = payload, .secured = sessions_ != nullptr}));
  }
  const std::size_t size = size_that_arrives(ways, sizes);
  const auto at = std::find(sizes.begin(), sizes.end(), size) - sizes.begin();
  return payloads[static_cast<std::size_t>(at)];
}

}  // namespace weft::net
