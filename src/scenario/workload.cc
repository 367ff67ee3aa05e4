#include "scenario/workload.h"

#include <algorithm>
#include <tuple>

#include "base/assert.h"
#include "scenario/flow_list.h"
#include "scenario/ideal.h"

namespace weft::scenario {
namespace {

constexpr std::uint64_t kMessageBytesMax = 1u << 30;
// the most active steps of an all-reduce: more are never active for long
constexpr std::uint32_t kStepsActiveMax = 16;

// All connections between two hosts with the same `qp` number; there are qps_per_peer of them.
struct Link {
  HostIndex a = 0, b = 0;  // a < b
  std::uint32_t qp = 0;
  std::uint32_t end_a = 0, end_b = 0;  // index of the first end, in each host's list
  friend bool operator<(const Link& x, const Link& y) {
    return std::tie(x.a, x.b, x.qp) < std::tie(y.a, y.b, y.qp);
  }
  bool same(const Link& y) const { return a == y.a && b == y.b && qp == y.qp; }
};

Link link_between(HostIndex x, HostIndex y, std::uint32_t qp) {
  return {.a = std::min(x, y), .b = std::max(x, y), .qp = qp};
}

std::vector<Link> links_of(const std::vector<Flow>& flows) {
  std::vector<Link> links;
  links.reserve(flows.size());
  for (const Flow& flow : flows) links.push_back(link_between(flow.from, flow.to, flow.qp));
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end(),
                          [](const Link& x, const Link& y) { return x.same(y); }),
              links.end());
  return links;
}

// Input: from[host + 1] is a count. Output: from[host] is the position where the host's items
// begin.
void accumulate(std::vector<std::uint32_t>& from) {
  for (std::size_t i = 1; i < from.size(); ++i) from[i] += from[i - 1];
}

// Numbers the connections in the order of `links`, and the ends in the order of hosts.
void lay_out_ends(Plan& plan, std::vector<Link>& links, std::uint32_t hosts) {
  const std::uint32_t qps = plan.qps_per_peer;
  plan.ends_from.assign(hosts + 1, 0);
  for (const Link& link : links) {
    plan.ends_from[link.a + 1] += qps;
    plan.ends_from[link.b + 1] += qps;
  }
  accumulate(plan.ends_from);
  plan.ends.resize(plan.ends_from.back());
  plan.connections.reserve(links.size() * qps);
  std::vector<std::uint32_t> next(hosts, 0);
  for (Link& link : links) {
    link.end_a = next[link.a];
    link.end_b = next[link.b];
    for (std::uint32_t k = 0; k < qps; ++k) {
      const auto connection = static_cast<std::uint32_t>(plan.connections.size());
      plan.connections.push_back({.a = link.a, .b = link.b});
      plan.ends[plan.ends_from[link.a] + next[link.a]++].connection = connection;
      plan.ends[plan.ends_from[link.b] + next[link.b]++].connection = connection;
    }
  }
}

// The index of the first end at `host` of the QPs to `peer`. REQUIRES that `links` has such a link.
std::uint32_t end_at(const std::vector<Link>& links, HostIndex host, HostIndex peer,
                     std::uint32_t qp) {
  const Link wanted = link_between(host, peer, qp);
  const auto found = std::lower_bound(links.begin(), links.end(), wanted);
  WEFT_ASSERT(found != links.end() && found->same(wanted));
  return found->a == host ? found->end_a : found->end_b;
}

Op op_of(const Flow& flow, const std::vector<Link>& links) {
  Op op{.bytes = flow.bytes, .start = flow.start, .peer = flow.to};
  op.first_end = end_at(links, flow.from, flow.to, flow.qp);
  op.after_receives = flow.after_receives;
  for (int i = 0; i < 2; ++i) {
    if (flow.after[i] == kNoHost) continue;
    op.after_end[i] = end_at(links, flow.from, flow.after[i], flow.qp);
  }
  op.with_immediate = flow.with_immediate;
  op.bad_rkey = flow.bad_rkey;
  op.victim = flow.victim;
  op.listed = flow.listed;
  return op;
}

void lay_out_ops(Plan& plan, const std::vector<Flow>& flows, const std::vector<Link>& links,
                 std::uint32_t hosts) {
  plan.ops_from.assign(hosts + 1, 0);
  for (const Flow& flow : flows) ++plan.ops_from[flow.from + 1];
  accumulate(plan.ops_from);
  plan.ops.resize(flows.size());
  std::vector<std::uint32_t> next(plan.ops_from.begin(), plan.ops_from.end() - 1);
  for (const Flow& flow : flows) {
    const Op& op = plan.ops[next[flow.from]++] = op_of(flow, links);
    for (std::uint32_t k = 0; k < plan.qps_per_peer; ++k) {
      plan.ends[plan.ends_from[flow.from] + op.first_end + k].sends = true;
    }
  }
}

// Counts for each end the immediates that will arrive.
void count_receives(Plan& plan, const std::vector<Flow>& flows, const std::vector<Link>& links) {
  for (const Flow& flow : flows) {
    if (!flow.with_immediate) continue;
    const std::uint32_t first =
        plan.ends_from[flow.to] + end_at(links, flow.to, flow.from, flow.qp);
    const Op op{.bytes = flow.bytes, .with_immediate = true};
    const bool repeats = flow.bytes == 0;
    const std::uint64_t messages = repeats ? plan.qps_per_peer : message_count(plan, op);
    const std::uint64_t used = std::min<std::uint64_t>(messages, plan.qps_per_peer);
    for (std::uint32_t k = 0; k < used; ++k) {
      // This QP gets the messages k, k + qps_per_peer, k + 2 * qps_per_peer, ...
      const std::uint64_t each = (messages - k + plan.qps_per_peer - 1) / plan.qps_per_peer;
      const std::uint64_t sum = plan.ends[first + k].receives + (plan.signal_each ? each : 1);
      plan.ends[first + k].receives =
          repeats ? End::kNoLimit
                  : static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, End::kNoLimit));
    }
    plan.signalled_qps = std::max(plan.signalled_qps, static_cast<std::uint32_t>(used));
  }
}

std::uint32_t active_max_of(const WorkloadSpec& spec, const Plan& plan) {
  if (spec.kind == WorkloadKind::kAllToAll) return spec.parallel;
  if (spec.kind == WorkloadKind::kRingAllReduce) return kStepsActiveMax;
  std::uint32_t most = 1;
  for (HostIndex host = 0; host < plan.host_count(); ++host) {
    most = std::max(most, plan.ops_from[host + 1] - plan.ops_from[host]);
  }
  return most;
}

}  // namespace

HostIndex Plan::host_of(FlowIndex flow) const {
  const auto after = std::upper_bound(ops_from.begin(), ops_from.end(), flow);
  return static_cast<HostIndex>(after - ops_from.begin()) - 1;
}

std::uint32_t message_size(const Plan& plan, const Op& op) {
  if (plan.message_bytes != 0) return static_cast<std::uint32_t>(plan.message_bytes);
  return static_cast<std::uint32_t>(std::min(op.bytes, kMessageBytesMax));
}

std::uint64_t message_count(const Plan& plan, const Op& op) {
  WEFT_ASSERT(op.bytes > 0);
  const std::uint64_t size = message_size(plan, op);
  return (op.bytes + size - 1) / size;
}

std::uint32_t message_bytes(const Plan& plan, const Op& op, std::uint64_t k) {
  const std::uint32_t size = message_size(plan, op);
  if (op.bytes == 0) return size;
  const std::uint64_t left = op.bytes - k * size;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(left, size));
}

bool is_signalled(const Plan& plan, const Op& op, std::uint64_t k) {
  if (!op.with_immediate) return false;
  return plan.signal_each || k + plan.qps_per_peer >= message_count(plan, op);
}

std::uint64_t flow_span(const Op& op) { return op.bytes == 0 ? std::uint64_t{1} << 40 : op.bytes; }

Plan make_plan(const Scenario& scenario, const fabric::Topology& topology, Prng prng) {
  const WorkloadSpec& spec = scenario.workload;
  const std::vector<Flow> flows = list_flows(spec, topology, prng);
  WEFT_ASSERT(flows.size() < kFlowCountMax);
  Plan plan;
  plan.qps_per_peer = spec.qps_per_peer;
  plan.outstanding = spec.outstanding;
  plan.message_bytes = spec.message_bytes;
  plan.signal_each = spec.immediate;
  plan.repeat_until = Time::from_start(spec.repeat_for);
  std::vector<Link> links = links_of(flows);
  lay_out_ends(plan, links, topology.host_count());
  lay_out_ops(plan, flows, links, topology.host_count());
  count_receives(plan, flows, links);
  plan.active_max = active_max_of(spec, plan);
  set_ideal(plan, scenario, topology);
  return plan;
}

}  // namespace weft::scenario
