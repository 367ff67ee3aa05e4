#include "net/path_payload.h"

#include <algorithm>

#include "net/path_mtu.h"
#include "os/interfaces.h"
#include "os/network_namespace.h"
#include "seal/secure_layout.h"
#include "wire/framing.h"

namespace weft::net {
namespace {

// IPv6 requires this MTU, and today's IPv4 links have it too. A smaller report by ICMP is ignored,
// because ICMP is not authenticated.
constexpr std::uint32_t kPathMtuMin = 1280;
constexpr std::size_t kIpv4Size = 20;

}  // namespace

std::uint32_t PathPayload::known_payload(std::span<const world::Address> peer) const {
  std::uint32_t payload = seal::kPayloads[0];
  const auto scope = os::NamespaceScope::enter(config_.network_namespace);
  if (!scope) return payload;  // without the network namespace nothing is known about paths
  const auto interfaces = os::list_interfaces();
  for (const fabric::Ev& ev : steering_->evs(config_.process)) {
    if (ev.port >= peer.size()) continue;
    const Ipv6& from = config_.planes[ev.port];
    const Ipv6 to = steering_->fields(config_.process, ev.port, ev.value, peer[ev.port].ip()).to;
    std::uint32_t mtu = path_mtu({.from = from, .to = to});
    if (mtu != 0) mtu = std::max(mtu, kPathMtuMin);
    // A plane that is down has no route, but may have one later: the MTU of its interface counts.
    if (const os::Interface* on = interfaces ? os::interface_of(from, *interfaces) : nullptr;
        on != nullptr && on->mtu != 0) {
      mtu = mtu == 0 ? on->mtu : std::min(mtu, on->mtu);
    }
    if (mtu == 0) continue;
    const std::size_t ip_size =
        base::is_ipv4(from) ? kIpv4Size : (config_.encapsulates ? 2 : 1) * wire::kIpv6Size;
    payload =
        std::min(payload, seal::payload_that_fits(
                              {.path_mtu = mtu, .ip_size = ip_size, .secured = config_.is_sealed}));
  }
  return payload;
}

std::uint32_t PathPayload::probe_payload(std::span<const world::Address> peer) const {
  const std::uint32_t fits = known_payload(peer);
  // With uSIDs, ICMP reports of routers name the carrier address instead of the peer's.
  if (fits <= seal::kPayloads.back() || config_.uses_usids) return fits;
  const auto scope = os::NamespaceScope::enter(config_.network_namespace);
  const auto interfaces = os::list_interfaces();
  if (!scope || !interfaces) return fits;
  std::vector<PathEnds> paths;
  for (std::size_t p = 0; p < config_.planes.size() && p < peer.size(); ++p) {
    // Packets between two addresses of this host cross no network, so there is nothing to probe.
    if (os::interface_of(peer[p].ip(), *interfaces) != nullptr || base::is_loopback(peer[p].ip()))
      continue;
    paths.push_back({.from = config_.planes[p], .to = peer[p].ip()});
  }
  std::vector<std::uint32_t> payloads;
  std::vector<std::size_t> sizes;
  for (const std::uint32_t payload : seal::kPayloads) {
    if (payload > fits) continue;
    payloads.push_back(payload);
    sizes.push_back(seal::write_size_max({.payload = payload, .secured = config_.is_sealed}));
  }
  const std::size_t size = size_that_arrives(paths, sizes);
  const auto at = std::find(sizes.begin(), sizes.end(), size) - sizes.begin();
  return payloads[static_cast<std::size_t>(at)];
}

}  // namespace weft::net
