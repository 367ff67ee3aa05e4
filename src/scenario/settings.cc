#include "scenario/settings.h"

#include <algorithm>

#include "fabric/address.h"
#include "scenario/framing.h"

namespace weft::scenario {
namespace {

constexpr std::uint32_t kAnsweringEvsPerPlane = 4;
constexpr std::uint32_t kPsnsPerBlock = 64;
// Spraying alone makes queues of several packets. Marks below this size would only disturb the load
// balance.
constexpr std::uint64_t kNoisePackets = 6;

std::uint64_t first_set(std::uint64_t value, std::uint64_t otherwise) {
  return value != 0 ? value : otherwise;
}

std::uint32_t narrowed(std::uint64_t value, std::uint32_t max) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, max));
}

// The most that the operations of this host can have in flight on one QP.
struct Demand {
  std::uint64_t messages = 0;    // posted and incomplete
  std::uint64_t psn_blocks = 0;  // of 64 PSNs each, for unacknowledged packets
};

Demand demand_of(const Scenario& scenario, const Plan& plan, const Op& op) {
  const std::uint64_t window = std::uint64_t{scenario.transport.mpr} * 128 / kPsnsPerBlock;
  if (op.bytes == 0) return {plan.outstanding, window + 2};
  const std::uint64_t messages = std::min<std::uint64_t>(message_count(plan, op), plan.outstanding);
  const std::uint64_t packets = op.bytes / scenario.transport.mtu + message_count(plan, op);
  return {messages, std::min(window, packets / kPsnsPerBlock) + 2};
}

// The number of EVs in rotation, and of all EVs with backups, for an end that sends data (`sends`)
// or only acknowledges.
std::uint32_t ev_rotation(const Scenario& scenario, bool sends) {
  const std::uint32_t evs = scenario.transport.evs;
  return sends ? evs : std::min(evs, kAnsweringEvsPerPlane * scenario.topology.planes);
}
std::uint32_t ev_count(const Scenario& scenario, bool sends) {
  return ev_rotation(scenario, sends) + (sends ? scenario.transport.backup_evs : 0);
}

}  // namespace

std::array<world::Address, world::kPortsMax> port_addresses(const Scenario& scenario,
                                                            HostIndex host) {
  std::array<world::Address, world::kPortsMax> ports{};
  for (std::uint32_t plane = 0; plane < scenario.topology.planes; ++plane) {
    ports[plane] = world::Address::of(fabric::address_of({.host = host, .plane = plane}));
  }
  return ports;
}

Duration base_rtt(const Scenario& scenario, const fabric::Topology& topology) {
  if (scenario.transport.base_rtt > Duration()) return scenario.transport.base_rtt;
  const Framing framing(scenario);
  return topology.idle_rtt_max(framing.packet_full(), framing.sack());
}

SwitchSpec resolved_switches(const Scenario& scenario, const fabric::Topology& topology) {
  SwitchSpec out = scenario.switches;
  const Framing framing(scenario);
  const std::uint64_t bdp = scenario.topology.host_rate.bytes_in(base_rtt(scenario, topology));
  out.queue_bytes = first_set(out.queue_bytes, out.trimming ? bdp : 5 * bdp);
  // Leave room above the marks for packets that arrive before senders react. A queue without room
  // for two packets would deliver nothing.
  const std::uint64_t noise = kNoisePackets * framing.packet_full();
  const std::uint64_t queue_min =
      scenario.switches.queue_bytes == 0 ? 6 * noise : 2 * framing.packet_full();
  out.queue_bytes = std::max(out.queue_bytes, queue_min);
  out.last_hop_queue_bytes = first_set(out.last_hop_queue_bytes, out.queue_bytes);
  if (out.ecn_min_bytes == 0 && out.ecn_max_bytes == 0) {
    out.ecn_min_bytes = std::max(bdp / 5, noise);
    out.ecn_max_bytes = std::max(bdp * 4 / 5, 2 * noise);
  }
  out.control_queue_bytes = first_set(out.control_queue_bytes, 4 * out.queue_bytes);
  return out;
}

transport::EndpointConfig endpoint_config(const Scenario& scenario, const Plan& plan,
                                          HostIndex host, std::uint64_t seed) {
  const TransportSpec& spec = scenario.transport;
  const auto ends = plan.ends_of(host);
  const auto ops = plan.ops_of(host);
  const std::uint64_t active = std::min<std::uint64_t>(ops.size(), plan.active_max);
  Demand most;
  for (const Op& op : ops) {
    const Demand demand = demand_of(scenario, plan, op);
    most.messages = std::max(most.messages, demand.messages);
    most.psn_blocks = std::max(most.psn_blocks, demand.psn_blocks);
  }
  std::uint64_t receives = 0, evs = 0;
  for (const End& end : ends) {
    receives = std::max<std::uint64_t>(receives, end.receives);
    evs += ev_count(scenario, end.sends);
  }
  // The most QPs that send at the same time.
  const std::uint64_t senders = std::min<std::uint64_t>(ends.size(), active * plan.qps_per_peer);

  transport::EndpointConfig config;
  config.port_count = scenario.topology.planes;
  config.ports = port_addresses(scenario, host);
  config.mtu = spec.mtu;
  config.burst = spec.burst;
  config.qp_count_max = narrowed(std::max<std::size_t>(ends.size(), 1), 1u << 23);
  config.peer_count_max = std::max(1u, config.qp_count_max / plan.qps_per_peer);
  config.ev_count_max = narrowed(std::max<std::uint64_t>(evs, 1), 0x7fff'ffff);
  config.psn_block_count_max =
      narrowed(std::max<std::uint64_t>(senders * most.psn_blocks, 2), 1u << 20);
  // Several operations may share a QP. Messages for which the queue has no room wait in the Host.
  config.send_queue_max =
      narrowed(std::max<std::uint64_t>(most.messages * (active > 1 ? 2 : 1), 1), 4096);
  config.receive_queue_max = narrowed(std::max<std::uint64_t>(receives, 1), spec.wimm_max);
  config.completion_queue_max =
      narrowed(senders * config.send_queue_max +
                   (receives > 0 ? ends.size() * config.receive_queue_max : 0) + 16,
               1u << 20);
  // Half of all EVs may be bad at the same time; a dead plane needs three entries.
  config.bad_ev_count_max = narrowed(evs / 2 + 3 * scenario.topology.planes, 512);
  config.batch_max = world::kBatchMin;
  config.control_queue_max = narrowed(4 * ends.size() + 48, 256);
  config.share_path_health = spec.share_path_health;
  config.seed = seed;
  config.host = host;
  return config;
}

transport::QpConfig qp_config(const Scenario& scenario, const fabric::Topology& topology) {
  const TransportSpec& spec = scenario.transport;
  transport::QpConfig config;
  config.mpr = config.mpr_dest = spec.mpr;
  config.dynamic_mpr = spec.dynamic_mpr;
  config.wimm_max = config.wimm_dest_max = spec.wimm_max;
  config.trim_nack = spec.trim_nack;
  config.sack_bytes = spec.sack_bytes;
  config.policy = spec.policy;
  config.condemn = spec.condemn;
  config.ev_active = spec.evs;
  config.ev_min_active_share_percent = spec.ev_min_active_percent;
  config.retry = spec.retry;
  config.nscc.enabled = spec.congestion_control;
  config.nscc.rate =
      Rate::bps(scenario.topology.host_rate.bits_per_second() * scenario.topology.planes);
  config.nscc.base_rtt = base_rtt(scenario, topology);
  config.nscc.trimming = scenario.switches.trimming;
  config.nscc.cwnd_bytes_max = static_cast<std::uint32_t>(spec.cwnd_max_bytes);
  return config;
}

EvList evs_for(const Scenario& scenario, const fabric::Topology& topology, const EvRequest& request,
               Prng prng) {
  const std::uint32_t planes = scenario.topology.planes;
  EvList list{.in_rotation = ev_rotation(scenario, request.sends)};
  if (request.paths.empty()) {
    const std::uint32_t count = ev_count(scenario, request.sends) / planes;
    list.evs =
        fabric::draw_evs(topology, scenario.forwarding, request.from, request.to, count, prng);
    return list;
  }
  for (const std::uint32_t path : request.paths) {
    for (std::uint32_t plane = 0; plane < planes; ++plane) {
      list.evs.push_back(fabric::ev_for_path(topology, scenario.forwarding, plane, request.from,
                                             request.to, path));
    }
  }
  list.in_rotation = static_cast<std::uint32_t>(list.evs.size());
  return list;
}

}  // namespace weft::scenario
