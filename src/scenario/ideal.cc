#include "scenario/ideal.h"

#include <algorithm>
#include <vector>

#include "scenario/framing.h"

namespace weft::scenario {
namespace {

using fabric::Topology;

// Wire bytes out of and into a host, T0 or pod.
struct Load {
  explicit Load(std::size_t count) : out(count, 0), in(count, 0) {}
  std::vector<std::uint64_t> out, in;
  std::uint64_t most() const {
    return std::max(*std::max_element(out.begin(), out.end()),
                    *std::max_element(in.begin(), in.end()));
  }
};

using Wide = unsigned __int128;

// In picoseconds: longer than any run, and small enough that the sum of two fits a Duration.
constexpr std::uint64_t kPsMax = 1'000'000'000'000'000'000;

Duration clamped(Wide ps) {
  return Duration::ps(static_cast<std::int64_t>(std::min<Wide>(ps, kPsMax)));
}

Duration time_over(std::uint64_t bytes, Rate link, std::uint64_t links) {
  return clamped(Wide{bytes} * 8'000'000'000'000 / (Wide{link.bits_per_second()} * links));
}

Duration times(Duration one, std::uint32_t count) {
  return clamped(static_cast<Wide>(one.ps()) * count);
}

std::uint64_t wire_bytes(const Plan& plan, const Op& op, const Framing& framing) {
  if (op.bytes == 0) return framing.message(message_size(plan, op));
  const std::uint64_t count = message_count(plan, op);
  return (count - 1) * framing.message(message_size(plan, op)) +
         framing.message(message_bytes(plan, op, count - 1));
}

// The time that the most loaded host, T0 or pod needs for its bytes.
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

// The longest RTT of all operations, for a full packet and its SACK.
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

// The one-way delay of a full packet on the idle path between two hosts.
Duration one_way(const Topology& topology, const Framing& framing, HostIndex from, HostIndex to) {
  return topology.idle_rtt(from, to, framing.packet_full(), 0) -
         topology.idle_rtt(from, to, 0, 0) / 2;
}

// The ranks of one all-reduce: `count` consecutive hosts, beginning with `first`.
struct Group {
  HostIndex first = 0;
  std::uint32_t count = 0;
};

// The delay of 2 * (count - 1) consecutive steps along the ring, without the time for the bytes of
// the chunks. The first step is at the rank for which the delay is longest.
Duration ring_delay(const Group& group, const Topology& topology, const Framing& framing) {
  std::vector<Duration> hop(group.count);
  Duration round;
  for (std::uint32_t r = 0; r < group.count; ++r) {
    hop[r] = one_way(topology, framing, group.first + r, group.first + (r + 1) % group.count);
    round += hop[r];
  }
  // Two rounds, without the two hops before the first step.
  Duration longest;
  for (std::uint32_t r = 0; r < group.count; ++r) {
    longest = std::max(longest, round * 2 - hop[r] - hop[(r + 1) % group.count]);
  }
  return longest;
}

// The time of a tree all-reduce, up and down. hop[r] is the one-way delay between rank r and its
// parent. A parent receives the vectors of its two children through one NIC, in the order of
// arrival. On the way down, each parent sends first to the child on the critical path.
Duration tree_time(const std::vector<Duration>& hop, Duration vector) {
  const auto count = static_cast<std::uint32_t>(hop.size());
  std::vector<Duration> summed(count);  // for each rank: when it has the sum of its subtree
  for (std::uint32_t rank = count; rank-- > 0;) {
    Duration free;  // when the NIC is free
    std::uint32_t first = 2 * rank + 1, second = 2 * rank + 2;
    if (second < count && summed[second] + hop[second] < summed[first] + hop[first]) {
      std::swap(first, second);
    }
    for (const std::uint32_t child : {first, second}) {
      if (child < count) free = std::max(free, summed[child] + hop[child]) + vector;
    }
    summed[rank] = free;
  }
  std::vector<Duration> known(count);  // for each rank: when it has the result
  known[0] = summed[0];
  for (std::uint32_t rank = 1; rank < count; ++rank) {
    known[rank] = known[(rank - 1) / 2] + vector + hop[rank];
  }
  return *std::max_element(known.begin(), known.end());
}

std::vector<Duration> tree_hops(const Group& group, const Topology& topology,
                                const Framing& framing) {
  std::vector<Duration> hop(group.count);
  for (std::uint32_t rank = 1; rank < group.count; ++rank) {
    hop[rank] = one_way(topology, framing, group.first + rank, group.first + (rank - 1) / 2);
  }
  return hop;
}

struct Ideal {
  // serial: time for the bytes on the narrowest links; delay: all other time
  Duration serial, delay;
};

Ideal free_ideal(const Plan& plan, const Framing& framing, const Topology& topology) {
  return {bottleneck(plan, framing, topology), longest_rtt(plan, framing, topology)};
}

Ideal all_reduce_ideal(const Plan& plan, const WorkloadSpec& spec, const Framing& framing,
                       const Topology& topology) {
  const fabric::TopologySpec& fabric = topology.spec();
  const Duration vector =
      time_over(wire_bytes(plan, plan.ops.front(), framing), fabric.host_rate, fabric.planes);
  const std::uint32_t hosts = spec.hosts == 0 ? topology.host_count() : spec.hosts;
  const std::uint32_t count = spec.group == 0 ? hosts : spec.group;
  Ideal ideal;
  for (HostIndex first = 0; first < hosts; first += count) {
    if (spec.kind == WorkloadKind::kRingAllReduce) {
      ideal.serial = times(vector, 2 * (count - 1));
      ideal.delay = std::max(ideal.delay, ring_delay({first, count}, topology, framing));
      continue;
    }
    ideal.serial = tree_time(std::vector<Duration>(count), vector);
    const Duration whole = tree_time(tree_hops({first, count}, topology, framing), vector);
    ideal.delay = std::max(ideal.delay, whole - ideal.serial);
  }
  // A step starts when data arrives. Only the end of the last step waits for an acknowledgement.
  const Duration rtt = longest_rtt(plan, framing, topology);
  ideal.delay += rtt - rtt / 2;
  return ideal;
}

}  // namespace

void set_ideal(Plan& plan, const Scenario& scenario, const Topology& topology) {
  const WorkloadSpec& spec = scenario.workload;
  const Framing framing(scenario);
  const fabric::TopologySpec& fabric = topology.spec();
  const std::uint64_t host_bps = fabric.host_rate.bits_per_second() * fabric.planes;
  plan.flow_limit_bps =
      static_cast<std::uint64_t>(Wide{host_bps} * framing.mtu() / framing.packet_full());
  const bool all_reduce =
      spec.kind == WorkloadKind::kRingAllReduce || spec.kind == WorkloadKind::kTreeAllReduce;
  const Ideal ideal = all_reduce ? all_reduce_ideal(plan, spec, framing, topology)
                                 : free_ideal(plan, framing, topology);
  plan.ideal = spec.repeat_for + ideal.serial + ideal.delay;
  plan.ideal_rtt = ideal.delay;
  plan.ideal_of_whole = all_reduce || spec.kind == WorkloadKind::kAllToAll;
  std::uint64_t payload = 0;
  for (const Op& op : plan.ops) {
    if (!op.victim) payload += op.bytes == 0 ? message_size(plan, op) : op.bytes;
  }
  plan.goodput_limit_bps =
      static_cast<std::uint64_t>(Wide{payload} * 8'000'000'000'000 /
                                 static_cast<Wide>(std::max<std::int64_t>(ideal.serial.ps(), 1)));
}

}  // namespace weft::scenario
