// Converts a scenario's switch settings, for both worlds that have switches: the simulator and the
// lab with its software switch.
#pragma once

#include <cstdint>

#include "fabric/topology.h"
#include "scenario/scenario.h"
#include "softswitch/live_fabric.h"
#include "switch/port_queue.h"

namespace weft::run {

struct SwitchQueues {
  switching::QueueParams fabric, last_hop;
  std::uint64_t shared_buffer_bytes = 0;
  std::uint32_t shared_alpha_percent = 100;
};
SwitchQueues switch_queues(const scenario::Scenario& scenario, const fabric::Topology& topology);

// Packets to the hosts' own addresses are always hashed over paths, even if the scenario uses SRv6:
// a packet with uSIDs names its path itself. Trimmed packets keep the bytes that sealed packets
// need, because the switch does not know whether hosts seal packets.
softswitch::LiveFabricConfig live_fabric_config(const scenario::Scenario& scenario,
                                                const fabric::Topology& topology,
                                                std::uint64_t seed);

}  // namespace weft::run
