#include "scenario/ideal.h"

#include <algorithm>
#include <vector>

#include "scenario/flow_list.h"
#include "scenario/framing.h"

namespace weft::scenario {
namespace {

using fabric::Topology;

// Wire bytes out of and into hosts, T0s or pods.
struct Load {
  explicit Load(std::size_t count) : out(count, 0), in(count, 0) {}
  std::vector<std::uint64_t> out, in;
  std::uint64_t most() const {
    return std::max(*std::max_element(out.begin(), out.end()),
                    *std::max_element(in.begin(), in.end()));
  }
};

Duration time_over(std::uint64_t bytes, Rate link, std::uint64_t links) {
  if (bytes == 0) return {};
  return Rate::bps(link.bits_per_second() * links).time_for(bytes);
}

std::uint64_t wire_bytes(const Plan& plan, const Op& op, const Framing& framing) {
  if (op.bytes == 0) return framing.message(message_size(plan, op));
  const std::uint64_t count = message_count(plan, op);
  return (count - 1) * framing.message(message_size(plan, op)) +
         framing.message(message_bytes(plan, op, count - 1));
}

// The busiest host, T0 or pod, by time.
Duration bottleneck(const Plan& plan, const Framing& framing, const Topology& topology) {
  Load hosts(topology.host_count());
  Load t0s(topology.switch_count(fabric::Tier::kT0));
  Load pods(topology.pod_of(topology.switch_count(fabric::Tier::kT0) - 1) + 1);
  for (HostIndex host = 0; host < plan.host_count(); ++host) {
    const std::uint32_t t0 = topology.t0_of(host), pod = topology.pod_of(t0);
    for (const Op& op : plan.ops_of(host)) {
      if (op.victim) continue;
      const std::uint64_t bytes = wire_bytes(plan, op, framing);
      const std::uint32_t peer_t0 = topology.t0_of(op.peer), peer_pod = topology.pod_of(peer_t0);
      hosts.out[host] += bytes;
      hosts.in[op.peer] += bytes;
      if (t0 != peer_t0) t0s.out[t0] += bytes, t0s.in[peer_t0] += bytes;
      if (pod != peer_pod) pods.out[pod] += bytes, pods.in[peer_pod] += bytes;
    }
  }
  const fabric::TopologySpec& spec = topology.spec();
  const std::uint64_t t0_links = std::uint64_t{spec.planes} * topology.uplinks_of_t0();
  const std::uint64_t pod_links = t0_links * topology.uplinks_of_t1();
  Duration longest = time_over(hosts.most(), spec.host_rate, spec.planes);
  if (t0_links > 0) longest = std::max(longest, time_over(t0s.most(), spec.fabric_rate, t0_links));
  if (pod_links > 0) {
    longest = std::max(longest, time_over(pods.most(), spec.fabric_rate, pod_links));
  }
  return longest;
}

// Of a full packet and its SACK, between the operation's hosts.
Duration longest_rtt(const Plan& plan, const Framing& framing, const Topology& topology) {
  Duration longest;
  for (HostIndex host = 0; host < plan.host_count(); ++host) {
    for (const Op& op : plan.ops_of(host)) {
      longest = std::max(longest,
                         topology.idle_rtt(host, op.peer, framing.packet_full(), framing.sack()));
    }
  }
  return longest;
}

}  // namespace

void set_ideal(Plan& plan, const Scenario& scenario, const Topology& topology) {
  const WorkloadSpec& spec = scenario.workload;
  const Framing framing(scenario);
  const fabric::TopologySpec& fabric = topology.spec();
  const std::uint64_t host_bps = fabric.host_rate.bits_per_second() * fabric.planes;
  plan.flow_limit_bps = static_cast<std::uint64_t>(static_cast<unsigned __int128>(host_bps) *
                                                   framing.mtu() / framing.packet_full());
  for (const Op& op : plan.ops) {
    if (!op.victim) plan.payload_bytes += op.bytes == 0 ? message_size(plan, op) : op.bytes;
  }
  const Duration rtt = longest_rtt(plan, framing, topology);
  const std::uint32_t hosts = spec.hosts == 0 ? topology.host_count() : spec.hosts;
  const std::uint32_t group = spec.group == 0 ? hosts : spec.group;
  std::int64_t steps = 1;
  Duration step;
  if (spec.kind == WorkloadKind::kRingAllReduce) {
    steps = 2 * (std::int64_t{group} - 1);
    step = time_over(wire_bytes(plan, plan.ops.front(), framing), fabric.host_rate, fabric.planes);
  } else if (spec.kind == WorkloadKind::kTreeAllReduce) {
    // A parent takes two children's sums through one NIC, and gives the result to both through one.
    const std::uint64_t children = group > 2 ? 2 : 1;
    steps = 2 * std::int64_t{tree_depth(group)};
    step = time_over(children * wire_bytes(plan, plan.ops.front(), framing), fabric.host_rate,
                     fabric.planes);
  } else {
    step = bottleneck(plan, framing, topology);
  }
  plan.ideal = (step + rtt) * steps;
  plan.ideal_rtt = rtt * steps;
  plan.ideal_of_whole = steps > 1 || spec.kind == WorkloadKind::kAllToAll;
}

}  // namespace weft::scenario
