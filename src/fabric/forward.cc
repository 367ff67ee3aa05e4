#include "fabric/forward.h"

#include <bit>

namespace weft::fabric {

std::uint16_t usid_of(const Topology& topology, const NodeId& node) {
  WEFT_ASSERT(topology.spec().needs_usids && node.plane < topology.plane_count());
  if (node.tier == Tier::kHost) {
    WEFT_ASSERT(node.index < topology.host_count());
    return make_usid(UsidRole::kHost, node.plane, topology.downlink_of(node.index) + 1);
  }
  WEFT_ASSERT(node.index < topology.switch_count(node.tier));
  const UsidRole role = node.tier == Tier::kT0   ? UsidRole::kT0
                        : node.tier == Tier::kT1 ? UsidRole::kT1
                                                 : UsidRole::kT2;
  return make_usid(role, node.plane, node.index + 1);
}

UsidList usids_for(const Topology& topology, std::uint32_t plane, HostIndex from, HostIndex to,
                   std::uint32_t path) {
  const Topology::Path links = topology.path(plane, from, to, path);
  UsidList list;
  for (std::uint32_t i = 0; i < links.hops; ++i) {
    list.usid[i] = usid_of(topology, topology.ends(links.links[i]).to);
  }
  return list;
}

StevLayout stev_layout(const Topology& topology) {
  const auto bits_for = [](std::uint32_t choices) {
    return choices < 2 ? 0u : static_cast<std::uint32_t>(std::bit_width(choices - 1));
  };
  return {.t0_bits = bits_for(topology.uplinks_of_t0()),
          .t1_bits = bits_for(topology.uplinks_of_t1())};
}

Forwarder::Forwarder(const Topology& topology, Forwarding mode, std::uint64_t salt_seed)
    : topology_(topology), mode_(mode), stev_(stev_layout(topology)), salt_seed_(salt_seed) {
  WEFT_ASSERT(mode != Forwarding::kSrv6 || topology.spec().needs_usids);
}

}  // namespace weft::fabric
