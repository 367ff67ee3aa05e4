// Derives the configuration of switches, endpoints and QPs from a scenario: defaults filled in,
// bounds taken from the plan.
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

// The value of the scenario; by default the idle RTT of a full packet and its SACK on the longest
// path.
Duration base_rtt(const Scenario& scenario, const fabric::Topology& topology);

// Replaces every 0 by its default. A plane-BDP is host_rate * base_rtt.
SwitchSpec resolved_switches(const Scenario& scenario, const fabric::Topology& topology);

// The addresses of a host's ports; only the first `planes` entries are set.
std::array<world::Address, world::kPortsMax> port_addresses(const Scenario& scenario,
                                                            HostIndex host);

// The bounds are exactly those of this host's part of the plan, because a fabric may have a hundred
// thousand endpoints.
transport::EndpointConfig endpoint_config(const Scenario& scenario, const Plan& plan,
                                          HostIndex host, std::uint64_t seed);

// Without EVs, because each end has its own.
transport::QpConfig qp_config(const Scenario& scenario, const fabric::Topology& topology);

// The EVs of one end; planes alternate. An end that sends no data gets a few EVs in each plane.
struct EvRequest {
  HostIndex from = 0, to = 0;
  bool sends = true;
  std::span<const std::uint32_t> paths{};  // empty: any path
};
struct EvList {
  std::uint32_t in_rotation = 0;  // that many from the front; the others are backups
  std::vector<fabric::Ev> evs{};
};
EvList evs_for(const Scenario& scenario, const fabric::Topology& topology, const EvRequest& request,
               Prng prng);

}  // namespace weft::scenario
