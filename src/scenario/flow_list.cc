#include "scenario/flow_list.h"

#include <algorithm>
#include <numeric>

namespace weft::scenario {
namespace {

using fabric::Topology;

std::uint32_t hosts_of(const WorkloadSpec& spec, const Topology& topology) {
  return spec.hosts == 0 ? topology.host_count() : spec.hosts;
}

std::uint32_t group_of(const WorkloadSpec& spec, const Topology& topology) {
  return spec.group == 0 ? hosts_of(spec, topology) : spec.group;
}

Flow plain(const WorkloadSpec& spec, HostIndex from, HostIndex to) {
  Flow flow{.from = from, .to = to, .with_immediate = spec.immediate};
  flow.bytes = spec.bytes;
  return flow;
}

// Host 2i sends to host 2i + 1. With `cross`, host i of the first half of the fabric sends to host
// i of the second half. If there are two T0s, these two hosts are under different T0s even if only
// few hosts take part.
std::vector<Flow> pairs(const WorkloadSpec& spec, const Topology& topology) {
  const std::uint32_t hosts = hosts_of(spec, topology);
  const std::uint32_t half = topology.host_count() / 2;
  std::vector<Flow> flows;
  for (std::uint32_t i = 0; i < hosts / 2; ++i) {
    const HostIndex from = spec.cross ? i : 2 * i;
    const HostIndex to = spec.cross ? half + i : 2 * i + 1;
    flows.push_back(plain(spec, from, to));
    if (spec.bidirectional) flows.push_back(plain(spec, to, from));
  }
  return flows;
}

// Every host sends to the next host in a random cycle through all hosts (Sattolo's shuffle), so no
// host sends to itself.
std::vector<Flow> permutation(const WorkloadSpec& spec, const Topology& topology, Prng& prng) {
  std::vector<HostIndex> to(hosts_of(spec, topology));
  std::iota(to.begin(), to.end(), 0u);
  for (std::uint32_t i = static_cast<std::uint32_t>(to.size()) - 1; i > 0; --i) {
    std::swap(to[i], to[prng.below(i)]);
  }
  std::vector<Flow> flows;
  flows.reserve(to.size());
  for (HostIndex from = 0; from < to.size(); ++from) flows.push_back(plain(spec, from, to[from]));
  return flows;
}

// The senders are the first hosts after the receiver's T0; if these are too few, also hosts under
// that T0. The victim's flow goes from the first host that does not send, to a neighbour of the
// receiver.
std::vector<Flow> incast(const WorkloadSpec& spec, const Topology& topology) {
  const std::uint32_t hosts = hosts_of(spec, topology);
  // Hosts that cannot be senders: the receiver, and the two ends of the victim's flow.
  const std::uint32_t reserved = spec.victim ? 3 : 1;
  const std::uint32_t senders = spec.senders == 0 ? hosts - reserved : spec.senders;
  std::vector<HostIndex> far, near;
  for (HostIndex host = 1; host < hosts; ++host) {
    const bool taken = spec.victim && host == 1;
    if (!taken) (topology.t0_of(host) == topology.t0_of(0) ? near : far).push_back(host);
  }
  far.insert(far.end(), near.begin(), near.end());
  std::vector<Flow> flows;
  for (std::uint32_t i = 0; i < senders; ++i) flows.push_back(plain(spec, far[i], 0));
  if (spec.victim) {
    flows.push_back(plain(spec, far[senders], 1));
    flows.back().victim = true;
  }
  return flows;
}

// In each step every rank sends a chunk to the next rank; step s waits for the chunk of step s - 1.
// After group - 1 steps each chunk is fully reduced at one rank. After group - 1 more steps every
// rank has all chunks.
std::vector<Flow> ring(const WorkloadSpec& spec, const Topology& topology) {
  const std::uint32_t hosts = hosts_of(spec, topology), group = group_of(spec, topology);
  const std::uint64_t chunk = (spec.bytes + group - 1) / group;
  std::vector<Flow> flows;
  flows.reserve(std::size_t{hosts} * 2 * (group - 1));
  for (HostIndex host = 0; host < hosts; ++host) {
    const HostIndex first = host / group * group;
    const std::uint32_t rank = host - first;
    for (std::uint32_t step = 0; step < 2 * (group - 1); ++step) {
      Flow flow{.from = host, .to = first + (rank + 1) % group, .bytes = chunk};
      flow.with_immediate = true;
      if (step > 0) flow.after[0] = first + (rank + group - 1) % group;
      flow.after_receives = step;
      flows.push_back(flow);
    }
  }
  return flows;
}

// A binary tree, numbered like a heap. A rank sends its sum up when the sums of both children have
// arrived. Then the result goes down.
std::vector<Flow> tree(const WorkloadSpec& spec, const Topology& topology) {
  const std::uint32_t hosts = hosts_of(spec, topology), group = group_of(spec, topology);
  std::vector<Flow> flows;
  for (HostIndex host = 0; host < hosts; ++host) {
    const HostIndex first = host / group * group;
    const std::uint32_t rank = host - first;
    Flow up{.from = host, .bytes = spec.bytes, .with_immediate = true};
    std::uint32_t children = 0;
    for (const std::uint32_t child : {2 * rank + 1, 2 * rank + 2}) {
      if (child < group) up.after[children++] = first + child;
    }
    up.after_receives = children > 0 ? 1 : 0;
    Flow down = up;  // the root has the result as soon as its children's sums have arrived
    if (rank > 0) {
      up.to = first + (rank - 1) / 2;
      flows.push_back(up);
      down.after[0] = up.to;
      down.after[1] = kNoHost;
      down.after_receives = 1;
    }
    for (std::uint32_t i = 0; i < children; ++i) {
      down.to = first + 2 * rank + 1 + i;
      flows.push_back(down);
    }
  }
  return flows;
}

// Rank r sends to r + 1, r + 2, ..., so that the ranks do not all begin with the same peer.
std::vector<Flow> all_to_all(const WorkloadSpec& spec, const Topology& topology) {
  const std::uint32_t hosts = hosts_of(spec, topology), group = group_of(spec, topology);
  std::vector<Flow> flows;
  flows.reserve(std::size_t{hosts} * (group - 1));
  for (HostIndex host = 0; host < hosts; ++host) {
    const HostIndex first = host / group * group;
    for (std::uint32_t i = 1; i < group; ++i) {
      flows.push_back(plain(spec, host, first + (host - first + i) % group));
    }
  }
  return flows;
}

std::vector<Flow> listed(const WorkloadSpec& spec) {
  std::vector<Flow> flows;
  for (std::uint32_t i = 0; i < spec.flows.size(); ++i) {
    const FlowSpec& given = spec.flows[i];
    Flow flow = plain(spec, given.from, given.to);
    if (given.bytes != 0) flow.bytes = given.bytes;
    flow.start = given.start;
    flow.qp = given.qp;
    flow.bad_rkey = given.bad_rkey;
    flow.listed = i;
    flows.push_back(flow);
    if (!spec.bidirectional) continue;
    std::swap(flow.from, flow.to);
    flow.bad_rkey = false;
    flows.push_back(flow);
  }
  std::stable_sort(flows.begin(), flows.end(),
                   [](const Flow& a, const Flow& b) { return a.start < b.start; });
  return flows;
}

}  // namespace

std::vector<Flow> list_flows(const WorkloadSpec& spec, const Topology& topology, Prng& prng) {
  switch (spec.kind) {
    case WorkloadKind::kPairs:
      return pairs(spec, topology);
    case WorkloadKind::kPermutation:
      return permutation(spec, topology, prng);
    case WorkloadKind::kIncast:
      return incast(spec, topology);
    case WorkloadKind::kRingAllReduce:
      return ring(spec, topology);
    case WorkloadKind::kTreeAllReduce:
      return tree(spec, topology);
    case WorkloadKind::kAllToAll:
      return all_to_all(spec, topology);
    case WorkloadKind::kFlows:
      return listed(spec);
  }
  return {};
}

}  // namespace weft::scenario
