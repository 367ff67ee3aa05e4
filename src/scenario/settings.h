// From a scenario to what switches, endpoints and QPs are told: defaults filled in, bounds derived
// from the plan.
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

// Of a full packet and its SACK on the longest path, or what the scenario says.
Duration base_rtt(const Scenario& scenario, const fabric::Topology& topology);

// Every 0 replaced by the value that it stands for. A plane-BDP is host_rate * base_rtt.
SwitchSpec resolved_switches(const Scenario& scenario, const fabric::Topology& topology);

// Of a host's ports, the first `planes` of them set.
std::array<world::Address, world::kPortsMax> port_addresses(const Scenario& scenario,
                                                            HostIndex host);

// Bounds for this host's part of the plan, and no more: there may be a hundred thousand of them.
transport::EndpointConfig endpoint_config(const Scenario& scenario, const Plan& plan,
                                          HostIndex host, std::uint64_t seed);

// Without EVs: those differ from end to end.
transport::QpConfig qp_config(const Scenario& scenario, const fabric::Topology& topology);

// The EVs of one end, planes interleaved. An end that only answers gets a few in each plane.
struct EvRequest {
  HostIndex from = 0, to = 0;
  bool sends = true;
  std::span<const std::uint32_t> paths{};  // empty: drawn from all
};
struct EvList {
  std::uint32_t in_rotation = 0;  // so many from the front; the rest are backups
  std::vector<fabric::Ev> evs{};
};
EvList evs_for(const Scenario& scenario, const fabric::Topology& topology, const EvRequest& request,
               Prng prng);

}  // namespace weft::scenario
