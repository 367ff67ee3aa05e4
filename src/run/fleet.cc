#include "run/fleet.h"

#include <algorithm>

#include "base/assert.h"
#include "base/prng.h"
#include "scenario/settings.h"

namespace weft::run {
namespace {

constexpr std::size_t kSeriesCountMax = 1u << 20;

// The paths that a flow in the scenario's list prescribes for this end of a connection; empty: any
// path.
std::span<const std::uint32_t> paths_of(const scenario::WorkloadSpec& spec, const Plan& plan,
                                        HostIndex host, std::uint32_t end) {
  if (spec.flows.empty()) return {};
  for (const scenario::Op& op : plan.ops_of(host)) {
    if (end - op.first_end < plan.qps_per_peer) return spec.flows[op.listed].paths;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Fleet>> Fleet::make(const scenario::Scenario& scenario,
                                           const fabric::Topology& topology,
                                           const Options& options) {
  std::unique_ptr<Fleet> fleet(new Fleet(scenario));
  WEFT_CHECK(fleet->build(topology, options));
  return fleet;
}

Result<void> Fleet::build(const fabric::Topology& topology, const Options& options) {
  const Prng prng(options.seed);
  plan_ = scenario::make_plan(scenario_, topology, prng.fork("workload"));
  scoreboard_.flows.resize(plan_.ops.size());
  scoreboard_.flows_left = plan_.ops.size();
  if (plan_.repeat_until > Time()) {
    const auto steps = plan_.repeat_until.ps() / scenario_.run.sample.ps() + 1;
    scoreboard_.series = scenario::Series(
        scenario_.run.sample, std::min(static_cast<std::size_t>(steps), kSeriesCountMax));
  }
  pairs_.resize(plan_.connections.size());
  crashed_.resize(plan_.host_count(), false);
  for (HostIndex host = 0; host < plan_.host_count(); ++host) {
    const auto config =
        scenario::endpoint_config(scenario_, plan_, host, prng.fork("endpoint", host).next());
    add_host(host, config, options);
    WEFT_CHECK(create_qps(topology, options, host, prng.fork("qp", host)));
  }
  for (HostIndex host = 0; host < plan_.host_count(); ++host) {
    WEFT_CHECK(connect_qps(host));
    hosts_[host].program->begin(Time(), hosts_[host].node);
  }
  pairs_ = {};
  return {};
}

void Fleet::add_host(HostIndex host, const transport::EndpointConfig& config,
                     const Options& options) {
  constexpr std::uint64_t kEveryAddress = ~std::uint64_t{0};
  Seat& seat = hosts_.emplace_back(config, options.memory(host, plan_), options.trace);
  seat.program.emplace(scenario::Host::Setup{.plan = plan_,
                                             .host = host,
                                             .sends_max = config.send_queue_max,
                                             .receives_max = config.receive_queue_max,
                                             .source = seat.node.declare_source(0, kEveryAddress),
                                             .scoreboard = scoreboard_,
                                             .trace = options.trace});
  seat.node.run(*seat.program);
}

Result<void> Fleet::create_qps(const fabric::Topology& topology, const Options& options,
                               HostIndex host, Prng prng) {
  transport::QpConfig config = scenario::qp_config(scenario_, topology);
  if (options.adjust_qp) options.adjust_qp(config);
  const auto ends = plan_.ends_of(host);
  const auto ops = plan_.ops_of(host);
  const bool has_first_flow = !ops.empty() && plan_.ops_from[host] == 0;
  for (std::uint32_t i = 0; i < ends.size(); ++i) {
    const scenario::EvRequest request{.from = host,
                                      .to = plan_.peer_of(host, ends[i]),
                                      .sends = ends[i].sends,
                                      .paths = paths_of(scenario_.workload, plan_, host, i)};
    const scenario::EvList list =
        scenario::evs_for(scenario_, topology, request, prng.fork("evs", i));
    config.evs = list.evs;
    config.ev_active = list.in_rotation;
    config.wimm_dest_max = static_cast<std::uint16_t>(
        std::clamp<std::uint32_t>(ends[i].receives, 1, scenario_.transport.wimm_max));
    const Psn first_psn(prng.fork("psn", i).below(Psn::kMask + 1));
    engine::NodeRdma& node = hosts_[host].node;
    WEFT_TRY(const rdma::QpIndex index, node.create_qp(config, first_psn));
    const transport::Qpn qpn = node.qpn(index);
    hosts_[host].program->add_end(qpn);
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
    engine::NodeRdma& node = hosts_[host].node;
    WEFT_CHECK(node.endpoint().connect(Time(), node.qpn(i), info));
  }
  return {};
}

std::vector<world::Address> Fleet::addresses(HostIndex host) const {
  const auto ports = scenario::port_addresses(scenario_, host);
  return {ports.begin(), ports.begin() + scenario_.topology.planes};
}

void Fleet::on_crash(HostIndex host) {
  crashed_[host] = true;
  for (scenario::FlowIndex flow = 0; flow < plan_.ops.size(); ++flow) {
    const HostIndex from = plan_.host_of(flow);
    scenario::FlowRecord& record = scoreboard_.flows[flow];
    const bool over = record.state == scenario::FlowState::kCompleted ||
                      record.state == scenario::FlowState::kFailed ||
                      record.state == scenario::FlowState::kAbandoned;
    if (over || (from != host && plan_.ops[flow].peer != host)) continue;
    record.state = scenario::FlowState::kAbandoned;
    --scoreboard_.flows_left;
  }
}

Fleet::QpErrors Fleet::qp_errors() const {
  // Whether a connection has a flow that has to fail.
  std::vector<bool> must_fail(plan_.connections.size(), false);
  for (HostIndex host = 0; host < plan_.host_count(); ++host) {
    for (const scenario::Op& op : plan_.ops_of(host)) {
      if (!op.bad_rkey) continue;
      for (std::uint32_t k = 0; k < plan_.qps_per_peer; ++k) {
        must_fail[plan_.ends_of(host)[op.first_end + k].connection] = true;
      }
    }
  }
  QpErrors errors;
  for (HostIndex host = 0; host < plan_.host_count(); ++host) {
    if (crashed_[host]) continue;
    const auto ends = plan_.ends_of(host);
    for (std::uint32_t i = 0; i < ends.size(); ++i) {
      const auto state = node(host).endpoint().qp_state(node(host).qpn(i));
      if (state != transport::QpState::kError) continue;
      const bool expected = must_fail[ends[i].connection] || crashed_[plan_.peer_of(host, ends[i])];
      ++(expected ? errors.expected : errors.unexpected);
    }
  }
  return errors;
}

bool Fleet::ev_floor_reached() const {
  const std::uint32_t floor =
      scenario_.transport.evs * scenario_.transport.ev_min_active_percent / 100;
  for (HostIndex host = 0; host < plan_.host_count(); ++host) {
    for (const scenario::Op& op : plan_.ops_of(host)) {
      for (std::uint32_t k = 0; k < plan_.qps_per_peer; ++k) {
        const auto view = node(host).endpoint().view(node(host).qpn(op.first_end + k));
        if (view.ev_active_min <= floor) return true;
      }
    }
  }
  return false;
}

transport::Endpoint::MemoryView Fleet::memory() const {
  transport::Endpoint::MemoryView sum;
  for (const Seat& seat : hosts_) {
    const auto one = seat.node.endpoint().memory();
    sum.endpoint += one.endpoint + sizeof(Seat) - sizeof(transport::Endpoint) +
                    seat.node.heap_bytes() + seat.program->heap_bytes();
    sum.qps += one.qps;
    sum.evs += one.evs;
    sum.psn_records += one.psn_records;
  }
  return sum;
}

CounterTable Fleet::counters() const {
  CounterTable sum;
  for (const Seat& seat : hosts_) {
    add_values(seat.node.endpoint().counters(), sum);
  }
  return sum;
}

std::vector<std::string> Fleet::stuck(std::size_t count_max) const {
  std::vector<std::string> lines;
  for (HostIndex host = 0; host < plan_.host_count() && lines.size() < count_max; ++host) {
    if (crashed_[host]) continue;
    std::string line = hosts_[host].program->stuck(node(host).endpoint());
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace weft::run
