#include "net/udp_world_config.h"

#include <fmt/core.h>

#include <algorithm>

#include "fabric/address.h"
#include "net/srv6_form.h"
#include "os/interfaces.h"
#include "world/world.h"

namespace weft::net {
namespace {

// Sets the fields that follow from the kind of peers.
Result<void> follow_peers(UdpWorldConfig& config) {
  if (config.peers == PeerKind::kSoftware) return {};
  if (!config.job_secret.empty())
    return Error{ErrorKind::kInvalid, "a job secret is between Weft's ends; take peers = weft"};
  for (const Ipv6& plane : config.planes) {
    if (!base::is_ipv4(plane) || base::is_loopback(plane)) continue;
    return Error{ErrorKind::kInvalid,
                 fmt::format("peers = mrc over {}: an ICRC covers IPv4's header, which the system "
                             "writes; take IPv6 planes",
                             os::text_of(plane))};
  }
  config.icrc = IcrcCover::kFull;
  config.shared_memory = false;
  // In other MRC implementations an EV is a UDP port and a flow label.
  if (config.ev_carrier == EvCarrier::kUdpPort && !base::is_ipv4(config.planes[0]))
    config.ev_carrier = EvCarrier::kPortAndLabel;
  return {};
}

}  // namespace

Result<UdpWorldConfig> complete_config(UdpWorldConfig config) {
  if (config.ev_carrier == EvCarrier::kSrv6 && config.place) {
    config.planes.clear();
    for (std::uint32_t p = 0; p < config.place->topology.plane_count(); ++p)
      config.planes.push_back(fabric::address_of({.host = config.place->self, .plane = p}));
  }
  if (config.planes.empty() || config.planes.size() > world::kPortsMax)
    return Error{ErrorKind::kInvalid, "a device has 1 to 8 planes"};
  for (auto plane = config.planes.begin(); plane != config.planes.end(); ++plane) {
    if (std::find(config.planes.begin(), plane, *plane) != plane)
      return Error{ErrorKind::kInvalid, os::text_of(*plane) + " is given for two planes"};
  }
  for (const Ipv6& plane : config.planes) {
    if (config.ev_carrier != EvCarrier::kPortAndLabel || !base::is_ipv4(plane)) continue;
    return Error{ErrorKind::kInvalid,
                 fmt::format("EV mode stev over {}: IPv4 has no flow labels; take IPv6 planes, or "
                             "EV mode port (--ev-mode, ev_mode)",
                             os::text_of(plane))};
  }
  WEFT_CHECK(follow_peers(config));
  return config;
}

Ipv6 listen_address(const UdpWorldConfig& config, std::uint32_t plane) {
  if (config.ev_carrier != EvCarrier::kSrv6 || config.srv6 == Srv6Form::kMrc)
    return config.planes[plane];
  return usids_end(config.place->topology, {.host = config.place->self, .plane = plane});
}

}  // namespace weft::net
