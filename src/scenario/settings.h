// Derives the configuration of switches, endpoints and QPs from a scenario. Fills in defaults;
// takes bounds from the plan.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "fabric/ev.h"
#include "fabric/topology.h"
#include "scenario/scenario.h"
#include "scenario/workload.h"
#include "transport/config.h"

namespace weft::scenario {

// The base RTT that the scenario sets. By default: the idle RTT of a full packet and its SACK on
// the longest path.
Duration base_rtt(const Scenario& scenario, const fabric::Topology& topology);

// Replaces every 0 by the default. The BDP of a plane is host_rate * base_rtt.
SwitchSpec resolved_switches(const Scenario& scenario, const fabric::Topology& topology);

// The addresses of a host's ports; only the first `planes` entries are set.
std::array<world::Address, world::kPortsMax> port_addresses(const Scenario& scenario,
                                                            HostIndex host);

// The bounds are exactly what this host's part of the plan needs, because a fabric may have a
// hundred thousand endpoints.
transport::EndpointConfig endpoint_config(const Scenario& scenario, const Plan& plan,
                                          HostIndex host, std::uint64_t seed);

// The result has no EVs: each end has its own.
transport::QpConfig qp_config(const Scenario& scenario, const fabric::Topology& topology);

// The EVs for one end of a QP, plane after plane in turn. An end that sends no data gets only a few
// EVs in each plane.
struct EvRequest {
  HostIndex from = 0, to = 0;
  bool sends = true;
  std::span<const std::uint32_t> paths{};  // empty: any path
};
struct EvList {
  // the first so many of `evs` are in rotation, the others are backups
  std::uint32_t in_rotation = 0;
  std::vector<fabric::Ev> evs{};
};
EvList evs_for(const Scenario& scenario, const fabric::Topology& topology, const EvRequest& request,
               Prng prng);

}  // namespace weft::scenario
