#include "scenario/fleet.h"

#include <algorithm>

#include "base/assert.h"
#include "base/prng.h"
#include "scenario/settings.h"

namespace weft::scenario {
namespace {

constexpr std::size_t kSeriesCountMax = 1u << 20;

// The paths that a listed flow asks for on this end; empty: any.
std::span<const std::uint32_t> paths_of(const WorkloadSpec& spec, const Plan& plan, HostIndex host,
                                        std::uint32_t end) {
  if (spec.flows.empty()) return {};
  for (const Op& op : plan.ops_of(host)) {
    if (end - op.first_end < plan.qps_per_peer) return spec.flows[op.listed].paths;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Fleet>> Fleet::make(const Scenario& scenario,
                                           const fabric::Topology& topology,
                                           const Options& options) {
  std::unique_ptr<Fleet> fleet(new Fleet(scenario));
  WEFT_CHECK(fleet->build(topology, options));
  return fleet;
}

Result<void> Fleet::build(const fabric::Topology& topology, const Options& options) {
  const Prng prng(options.seed);
  plan_ = make_plan(scenario_, topology, prng.fork("workload"));
  scoreboard_.flows.resize(plan_.ops.size());
  scoreboard_.flows_left = plan_.ops.size();
  if (plan_.repeat_until > Time()) {
    const auto steps = plan_.repeat_until.ps() / scenario_.run.sample.ps() + 1;
    scoreboard_.series =
        Series(scenario_.run.sample, std::min(static_cast<std::size_t>(steps), kSeriesCountMax));
  }
  pairs_.resize(plan_.connections.size());
  crashed_.resize(plan_.host_count(), false);
  for (HostIndex host = 0; host < plan_.host_count(); ++host) {
    const auto config = endpoint_config(scenario_, plan_, host, prng.fork("endpoint", host).next());
    hosts_.emplace_back(Host::Setup{.plan = plan_,
                                    .host = host,
                                    .config = config,
                                    .memory = options.memory(host, plan_),
                                    .scoreboard = scoreboard_,
                                    .trace = options.trace});
    WEFT_CHECK(create_qps(topology, options, host, prng.fork("qp", host)));
  }
  for (HostIndex host = 0; host < plan_.host_count(); ++host) {
    WEFT_CHECK(connect_qps(host));
    WEFT_CHECK(hosts_[host].begin(Time()));
  }
  pairs_ = {};
  return {};
}

Result<void> Fleet::create_qps(const fabric::Topology& topology, const Options& options,
                               HostIndex host, Prng prng) {
  transport::QpConfig config = qp_config(scenario_, topology);
  if (options.suit_qp) options.suit_qp(config);
  const auto ends = plan_.ends_of(host);
  const auto ops = plan_.ops_of(host);
  const bool has_first_flow = !ops.empty() && plan_.ops_from[host] == 0;
  for (std::uint32_t i = 0; i < ends.size(); ++i) {
    const EvRequest request{.from = host,
                            .to = plan_.peer_of(host, ends[i]),
                            .sends = ends[i].sends,
                            .paths = paths_of(scenario_.workload, plan_, host, i)};
    const EvList list = evs_for(scenario_, topology, request, prng.fork("evs", i));
    config.evs = list.evs;
    config.ev_active = list.in_rotation;
    config.wimm_dest_max = static_cast<std::uint16_t>(
        std::clamp<std::uint32_t>(ends[i].receives, 1, scenario_.transport.wimm_max));
    const Psn first_psn(prng.fork("psn", i).below(Psn::kMask + 1));
    WEFT_TRY(const transport::Qpn qpn, hosts_[host].create_qp(config, first_psn));
    const int side = plan_.connections[ends[i].connection].a == host ? 0 : 1;
    pairs_[ends[i].connection].qpn[side] = qpn;
    pairs_[ends[i].connection].first_psn[side] = first_psn;
    if (has_first_flow && ops.front().first_end == i) {
      for (const fabric::Ev& ev : list.evs) first_flow_evs_.push_back(ev.value);
    }
  }
  return {};
}

Result<void> Fleet::connect_qps(HostIndex host) {
  const auto ends = plan_.ends_of(host);
  for (std::uint32_t i = 0; i < ends.size(); ++i) {
    const HostIndex peer = plan_.peer_of(host, ends[i]);
    const int other = plan_.connections[ends[i].connection].a == host ? 1 : 0;
    const Pair& pair = pairs_[ends[i].connection];
    transport::PeerInfo info;
    const auto ports = addresses(peer);
    std::copy(ports.begin(), ports.end(), info.ports.begin());
    info.host = peer;
    info.qpn = pair.qpn[other];
    info.first_psn = pair.first_psn[other];
    WEFT_CHECK(hosts_[host].connect(Time(), i, info));
  }
  return {};
}

std::vector<world::Address> Fleet::addresses(HostIndex host) const {
  const auto ports = port_addresses(scenario_, host);
  return {ports.begin(), ports.begin() + scenario_.topology.planes};
}

void Fleet::on_crash(HostIndex host) {
  crashed_[host] = true;
  for (FlowIndex flow = 0; flow < plan_.ops.size(); ++flow) {
    const HostIndex from = plan_.host_of(flow);
    FlowRecord& record = scoreboard_.flows[flow];
    const bool over = record.state == FlowState::kCompleted || record.state == FlowState::kFailed ||
                      record.state == FlowState::kAbandoned;
    if (over || (from != host && plan_.ops[flow].peer != host)) continue;
    record.state = FlowState::kAbandoned;
    --scoreboard_.flows_left;
  }
}

Fleet::QpErrors Fleet::qp_errors() const {
  // Connections on which a flow was meant to fail.
  std::vector<bool> meant(plan_.connections.size(), false);
  for (HostIndex host = 0; host < plan_.host_count(); ++host) {
    for (const Op& op : plan_.ops_of(host)) {
      if (!op.bad_rkey) continue;
      for (std::uint32_t k = 0; k < plan_.qps_per_peer; ++k) {
        meant[plan_.ends_of(host)[op.first_end + k].connection] = true;
      }
    }
  }
  QpErrors errors;
  for (HostIndex host = 0; host < plan_.host_count(); ++host) {
    if (crashed_[host]) continue;
    const auto ends = plan_.ends_of(host);
    for (std::uint32_t i = 0; i < ends.size(); ++i) {
      const auto state = hosts_[host].endpoint().qp_state(hosts_[host].qpn(i));
      if (state != transport::QpState::kError) continue;
      const bool expected = meant[ends[i].connection] || crashed_[plan_.peer_of(host, ends[i])];
      ++(expected ? errors.expected : errors.unexpected);
    }
  }
  return errors;
}

bool Fleet::ev_floor_reached() const {
  const std::uint32_t floor =
      scenario_.transport.evs * scenario_.transport.ev_min_active_percent / 100;
  for (HostIndex host = 0; host < plan_.host_count(); ++host) {
    for (const Op& op : plan_.ops_of(host)) {
      for (std::uint32_t k = 0; k < plan_.qps_per_peer; ++k) {
        const auto view = hosts_[host].endpoint().view(hosts_[host].qpn(op.first_end + k));
        if (view.ev_active_min <= floor) return true;
      }
    }
  }
  return false;
}

transport::Endpoint::MemoryView Fleet::memory() const {
  transport::Endpoint::MemoryView sum;
  for (const Host& host : hosts_) {
    const auto one = host.endpoint().memory();
    sum.endpoint += one.endpoint + sizeof(Host) - sizeof(transport::Endpoint) + host.heap_bytes();
    sum.qps += one.qps;
    sum.evs += one.evs;
    sum.psn_records += one.psn_records;
  }
  return sum;
}

CounterTable Fleet::counters() const {
  CounterTable sum;
  for (const Host& host : hosts_) {
    const CounterTable table = host.endpoint().counters();
    if (sum.empty()) sum.assign(table.size(), {});
    WEFT_ASSERT(sum.size() == table.size());
    for (std::size_t i = 0; i < table.size(); ++i) {
      sum[i].name = table[i].name;
      sum[i].unit = table[i].unit;
      sum[i].value += table[i].value;
    }
  }
  return sum;
}

std::vector<std::string> Fleet::stuck(std::size_t count_max) const {
  std::vector<std::string> lines;
  for (HostIndex host = 0; host < plan_.host_count() && lines.size() < count_max; ++host) {
    if (crashed_[host]) continue;
    std::string line = hosts_[host].stuck();
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace weft::scenario
