#include "net/steering.h"

#include <fmt/core.h>

#include <algorithm>

#include "fabric/address.h"
#include "wire/ip_layout.h"

namespace weft::net {
namespace {

// With flow labels a few source ports suffice, because switches hash both fields.
constexpr std::uint32_t kEvsPerSocket = 16;
constexpr std::uint32_t kSrv6PlaneShift = 24;

}  // namespace

Result<Steering> Steering::make(const SteeringConfig& config) {
  if (config.evs_per_plane == 0 || config.evs_per_plane > kEvsPerPlaneMax)
    return Error{ErrorKind::kInvalid, "evs: expected 1 to 4096 in a plane"};
  Steering out(config);
  switch (config.carrier) {
    case EvCarrier::kUdpPort:
      if (config.evs_per_plane > wire::kSourcePortsMax) {
        return Error{ErrorKind::kInvalid,
                     fmt::format("evs {}: expected at most {} in a plane, as an EV is a UDP source "
                                 "port; with IPv6 more by --ev-mode stev",
                                 config.evs_per_plane, wire::kSourcePortsMax)};
      }
      out.sockets_ = config.evs_per_plane;
      break;
    case EvCarrier::kPortAndLabel:
      out.sockets_ = std::min((config.evs_per_plane + kEvsPerSocket - 1) / kEvsPerSocket,
                              wire::kSourcePortsMax);
      break;
    case EvCarrier::kSrv6:
      if (!config.place) return Error{ErrorKind::kInvalid, "SRv6 needs a fabric to steer in"};
      if (config.place->self >= config.place->topology.host_count())
        return Error{ErrorKind::kInvalid,
                     fmt::format("host {}: the fabric has hosts 0 to {}", config.place->self,
                                 config.place->topology.host_count() - 1)};
      break;
  }
  return out;
}

std::vector<fabric::Ev> Steering::evs(std::uint16_t process) const {
  std::vector<fabric::Ev> out;
  for (std::uint32_t i = 0; i < config_.evs_per_plane; ++i) {
    for (std::uint32_t plane = 0; plane < config_.plane_count; ++plane) {
      std::uint32_t value = plane << kSrv6PlaneShift | i;
      if (config_.carrier != EvCarrier::kSrv6) {
        value = fabric::entropy_of_fields(
            {.source_port = wire::source_port(process, i % sockets_), .flow_label = i / sockets_});
      }
      out.push_back({.value = value, .port = static_cast<std::uint8_t>(plane)});
    }
  }
  return out;
}

Steering::Fields Steering::fields(std::uint16_t process, std::uint32_t plane, std::uint32_t ev,
                                  const Ipv6& peer) const {
  if (config_.carrier != EvCarrier::kSrv6) {
    const fabric::EntropyFields fields = fabric::fields_of_entropy(ev);
    const std::uint32_t socket =
        static_cast<std::uint32_t>(fields.source_port) - wire::source_port(process, 0);
    if (socket >= sockets_) return {.socket = 0, .to = peer, .flow_label = 0};
    return {.socket = socket, .to = peer, .flow_label = fields.flow_label};
  }
  const auto host = fabric::port_of(peer);
  const FabricPlace& place = *config_.place;
  if (!host || host->host >= place.topology.host_count() || host->host == place.self)
    return {.socket = 0, .to = peer, .flow_label = 0};
  const std::uint32_t path = fabric::path_of_ev(place.topology, place.self, host->host, ev);
  return {.socket = 0,
          .to = fabric::address_of(
              fabric::usids_for(place.topology, plane, place.self, host->host, path)),
          .flow_label = ev & wire::ipv6_at::kFlowLabelMask};
}

std::uint32_t Steering::ev_of(const Seen& seen) const {
  if (config_.carrier == EvCarrier::kSrv6)
    return seen.plane << kSrv6PlaneShift | (seen.flow_label & wire::ipv6_at::kFlowLabelMask);
  return fabric::entropy_of_fields(
      {.source_port = seen.source_port,
       .flow_label = config_.carrier == EvCarrier::kPortAndLabel ? seen.flow_label : 0});
}

}  // namespace weft::net
