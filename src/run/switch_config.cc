#include "run/switch_config.h"

#include "scenario/settings.h"
#include "seal/secure_layout.h"

namespace weft::run {

SwitchQueues switch_queues(const scenario::Scenario& scenario, const fabric::Topology& topology) {
  const scenario::SwitchSpec spec = scenario::resolved_switches(scenario, topology);
  SwitchQueues out{.fabric = {.data_bytes_max = spec.queue_bytes,
                              .control_bytes_max = spec.control_queue_bytes,
                              .ecn_bytes_min = spec.ecn_min_bytes,
                              .ecn_bytes_max = spec.ecn_max_bytes,
                              .ecn = spec.ecn,
                              .trimming = spec.trimming},
                   .last_hop = {},
                   .shared_buffer_bytes = spec.shared_buffer_bytes,
                   .shared_alpha_percent = spec.shared_alpha_percent};
  out.last_hop = out.fabric;
  out.last_hop.data_bytes_max = spec.last_hop_queue_bytes;
  out.last_hop.ecn = spec.ecn && spec.last_hop_ecn;
  return out;
}

softswitch::LiveFabricConfig live_fabric_config(const scenario::Scenario& scenario,
                                                const fabric::Topology& topology,
                                                std::uint64_t seed) {
  const SwitchQueues queues = switch_queues(scenario, topology);
  return {.topology = topology,
          .forwarding = scenario.forwarding == fabric::Forwarding::kStev
                            ? fabric::Forwarding::kStev
                            : fabric::Forwarding::kHashed,
          .mtu = scenario.transport.mtu,
          .trimmed_size_after_ip = seal::kSealedTrimmedSizeAfterIp,
          .fabric_queue = queues.fabric,
          .last_hop_queue = queues.last_hop,
          .shared_buffer_bytes = queues.shared_buffer_bytes,
          .shared_alpha_percent = queues.shared_alpha_percent,
          .seed = seed};
}

}  // namespace weft::run
