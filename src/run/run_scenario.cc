#include "run/run_scenario.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "base/huge_pages.h"
#include "fabric/topology.h"
#include "run/fleet.h"
#include "run/path_story.h"
#include "run/switch_config.h"
#include "scenario/faults.h"
#include "scenario/settings.h"
#include "sim/flow_memory.h"

namespace weft::run {
namespace {

using fabric::HostIndex;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

sim::SimConfig sim_config(const scenario::Scenario& scenario, const fabric::Topology& topology,
                          std::uint64_t seed) {
  const SwitchQueues queues = switch_queues(scenario, topology);
  return {.topology = topology,
          .forwarding = scenario.forwarding,
          .srv6_header = scenario.transport.extra_header_srv6,
          .mtu = scenario.transport.mtu,
          .fabric_queue = queues.fabric,
          .last_hop_queue = queues.last_hop,
          .shared_buffer_bytes = queues.shared_buffer_bytes,
          .shared_alpha_percent = queues.shared_alpha_percent,
          .seed = seed};
}

sim::MemoryKind memory_kind(scenario::MemoryKind kind) {
  switch (kind) {
    case scenario::MemoryKind::kBytes:
      return sim::MemoryKind::kBytes;
    case scenario::MemoryKind::kProvenance:
      return sim::MemoryKind::kProvenance;
    case scenario::MemoryKind::kNone:
      break;
  }
  return sim::MemoryKind::kNone;
}

std::vector<sim::FlowMemory::Range> ranges_of(const scenario::Plan& plan) {
  std::vector<sim::FlowMemory::Range> ranges;
  ranges.reserve(plan.ops.size());
  for (scenario::FlowIndex flow = 0; flow < plan.ops.size(); ++flow) {
    const scenario::Op& op = plan.ops[flow];
    ranges.push_back({.owner = op.peer,
                      .base = scenario::flow_base(flow),
                      .span = scenario::flow_span(op),
                      .message_size = scenario::message_size(plan, op)});
  }
  return ranges;
}

// One run, with all objects that live as long as the run.
class Run {
 public:
  Run(const scenario::Scenario& scenario, const RunOptions& options)
      : scenario_(scenario), options_(options), started_(std::chrono::steady_clock::now()) {}

  Result<Outcome> carry_out() {
    WEFT_CHECK(build());
    outcome_.memory.build_s = seconds_since(started_);
    drive();
    finish();
    return std::move(outcome_);
  }

 private:
  Result<void> build();
  void drive();
  void step_to(Time limit);
  void deliver_trace();
  void feed_story();
  void finish();
  void check_memory();
  void mark(TraceKind kind, HostIndex host = 0);

  const scenario::Scenario& scenario_;
  const RunOptions& options_;
  std::chrono::steady_clock::time_point started_;
  Trace trace_;
  bool traced_ = false;
  std::unique_ptr<sim::FlowMemory> memory_;
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<sim::SimWorld> world_;
  std::optional<judge::Judge> judge_;
  scenario::FaultPlan faults_;
  PathStory story_;
  std::size_t fault_next_ = 0;  // the next fault of the plan for feed_story()
  Outcome outcome_;
};

Result<void> Run::build() {
  WEFT_TRY(const auto topology, fabric::Topology::make(scenario_.topology));
  traced_ = scenario_.run.judge || options_.on_trace || options_.story;
  const auto memory_of = [this](HostIndex host, const scenario::Plan& plan) -> world::Memory& {
    if (!memory_) {
      memory_ = std::make_unique<sim::FlowMemory>(memory_kind(scenario_.run.memory),
                                                  ranges_of(plan), plan.host_count());
    }
    return memory_->of(host);
  };
  WEFT_TRY(fleet_,
           Fleet::make(
               scenario_, topology,
               {.seed = options_.seed, .memory = memory_of, .trace = traced_ ? &trace_ : nullptr}));
  world_ = std::make_unique<sim::SimWorld>(sim_config(scenario_, topology, options_.seed));
  world_->set_capture(static_cast<bool>(options_.on_captured));
  std::vector<scenario::FaultSpec> specs = scenario_.faults;
  const auto drawn = scenario::draw_faults(scenario_.random_faults, topology, scenario_.transport,
                                           Prng(options_.seed).fork("faults"));
  specs.insert(specs.end(), drawn.begin(), drawn.end());
  for (const scenario::FaultSpec& spec : specs) outcome_.faults.push_back(scenario::describe(spec));
  faults_ = scenario::make_fault_plan(specs, topology, fleet_->first_flow_evs());
  world_->schedule(faults_.events);
  bool duplicates = false;
  for (const fabric::FaultEvent& fault : faults_.events) {
    duplicates |= fault.impairment.kind == fabric::ImpairmentKind::kDuplicate;
  }
  if (scenario_.run.judge) {
    judge_.emplace(judge::Options{.duplicates = duplicates,
                                  .errors_expected = scenario_.expect.qp_errors_max > 0 ||
                                                     scenario_.expect.remote_access_errors > 0});
  }
  for (HostIndex host = 0; host < fleet_->host_count(); ++host) {
    WEFT_CHECK(world_->attach(fleet_->addresses(host), fleet_->node(host)));
  }
  return {};
}

void Run::mark(TraceKind kind, HostIndex host) {
  if (!traced_) return;
  TraceRecord record;
  record.at = world_->now();
  record.host = host;
  record.kind = kind;
  trace_.append(record);
}

// Passes trace records and captured packets to those who read them, then drops the records and
// packets.
void Run::deliver_trace() {
  if (judge_) judge_->read(trace_.records());
  if (options_.on_trace) options_.on_trace(trace_.records());
  if (options_.story) feed_story();
  trace_.clear();
  if (options_.on_captured) {
    const auto captured = world_->take_captured();
    options_.on_captured(captured);
  }
  if (options_.on_progress) {
    options_.on_progress(world_->now().since_start(), fleet_->scoreboard().flows_left);
  }
}

// Reads the trace into the story. Whenever faults change, a new phase begins.
void Run::feed_story() {
  const auto& records = trace_.records();
  for (std::size_t from = 0; from < records.size();) {
    while (fault_next_ < faults_.events.size() &&
           faults_.events[fault_next_].at <= records[from].at) {
      const Time at = faults_.events[fault_next_].at;
      while (fault_next_ < faults_.events.size() && faults_.events[fault_next_].at == at)
        ++fault_next_;
      story_.next_phase();
    }
    std::size_t end = from;
    const Time until =
        fault_next_ < faults_.events.size() ? faults_.events[fault_next_].at : kNever;
    while (end < records.size() && records[end].at < until) ++end;
    story_.read(std::span(records).subspan(from, end - from));
    from = end;
  }
}

// Steps in slices, so that the trace stays short and the run ends soon after the last completion.
void Run::step_to(Time limit) {
  const Duration slice = std::clamp(fleet_->plan().ideal / 64, Duration::us(1), Duration::us(200));
  while (world_->now() < limit && !fleet_->is_done()) {
    const bool more = world_->step(std::min(limit, world_->now() + slice));
    deliver_trace();
    if (!more) break;
  }
}

void Run::drive() {
  const Time end = Time::from_start(scenario_.run.time_limit);
  for (const fabric::FaultEvent& fault : faults_.events) {
    if (fault.action != fabric::FaultAction::kCrash) continue;
    // End slices exactly at the crash, so that the fleet learns of the crash at the right time.
    while (world_->now() < fault.at && world_->now() < end) {
      if (!world_->step(std::min({fault.at, end, world_->now() + Duration::us(200)}))) break;
      deliver_trace();
    }
    if (world_->now() < fault.at) break;  // the run ended before this fault
    fleet_->on_crash(fault.host);
    mark(TraceKind::kHostDown, fault.host);
  }
  step_to(std::min(faults_.healed_at, end));
  mark(TraceKind::kHealed);
  step_to(end);
  if (!fleet_->is_done()) return;  // the run is stuck: it reached the time limit
  // Let the last acknowledgements arrive.
  const Duration settle =
      scenario::base_rtt(scenario_, *fabric::Topology::make(scenario_.topology)) * 8;
  world_->step(world_->now() + settle);
  deliver_trace();
}

void Run::check_memory() {
  if (!judge_ || scenario_.run.memory == scenario::MemoryKind::kNone) return;
  const scenario::Plan& plan = fleet_->plan();
  struct Ends {
    std::uint32_t qpn[2] = {0, 0};
  };
  std::vector<Ends> qpns(plan.connections.size());
  for (HostIndex host = 0; host < plan.host_count(); ++host) {
    const auto ends = plan.ends_of(host);
    for (std::uint32_t i = 0; i < ends.size(); ++i) {
      const auto& connection = plan.connections[ends[i].connection];
      qpns[ends[i].connection].qpn[connection.a == host ? 0 : 1] = fleet_->host(host).qpn(i);
    }
  }
  for (scenario::FlowIndex flow = 0; flow < plan.ops.size(); ++flow) {
    const scenario::Op& op = plan.ops[flow];
    const HostIndex from = plan.host_of(flow);
    const auto& record = fleet_->scoreboard().flows[flow];
    const std::uint64_t messages = op.bytes == 0
                                       ? record.bytes_completed / scenario::message_size(plan, op)
                                       : scenario::message_count(plan, op);
    for (std::uint64_t k = 0; k < messages; ++k) {
      const auto& end = plan.ends_of(from)[op.first_end + k % plan.qps_per_peer];
      const auto& connection = plan.connections[end.connection];
      const std::uint32_t size = scenario::message_bytes(plan, op, k);
      TraceRecord r;
      r.at = world_->now();
      r.kind = TraceKind::kMemory;
      r.host = op.peer;
      r.qpn = qpns[end.connection].qpn[connection.a == op.peer ? 0 : 1];
      r.peer = from;
      r.id = std::uint64_t{flow} << 32 | k;
      r.a = memory_->correct_bytes(flow, k, size);
      r.b = size;
      trace_.append(r);
    }
  }
}

void Run::finish() {
  check_memory();
  mark(TraceKind::kEnd);
  deliver_trace();
  if (judge_) outcome_.complaints = judge_->finish();
  if (options_.story) outcome_.story = story_.lines();
  outcome_.transient_count = story_.transient_count();
  outcome_.counters = fleet_->counters();
  outcome_.world = world_->counters();
  outcome_.memory.parts = world_->memory();
  const auto fleet = fleet_->memory();
  for (const auto& [name, bytes] :
       std::initializer_list<sim::MemoryPart>{{"endpoints", fleet.endpoint},
                                              {"QPs", fleet.qps},
                                              {"EV tables", fleet.evs},
                                              {"PSN records", fleet.psn_records}}) {
    outcome_.memory.parts.push_back({name, bytes});
  }
  outcome_.memory.parts.push_back({"simulated memory", memory_ ? memory_->bytes() : 0});
  if (!fleet_->is_done()) outcome_.stuck = fleet_->stuck(8);
  const auto errors = fleet_->qp_errors();
  scenario::RunFacts facts;
  facts.seed = options_.seed;
  facts.trace_hash = world_->trace_hash();
  facts.simulated = world_->now().since_start();
  facts.packets_sent = outcome_.world.packets_sent;
  facts.retransmits = value_of(outcome_.counters, "transport.retransmits");
  facts.trims = outcome_.world.trims;
  facts.drops = outcome_.world.drops();
  facts.ecn_marks = outcome_.world.ecn_marks;
  facts.ev_bad = value_of(outcome_.counters, "transport.evs_condemned");
  facts.inflight_off = value_of(outcome_.counters, "transport.unbalanced");
  facts.planes_bad = value_of(outcome_.counters, "transport.planes_condemned");
  facts.ev_floor_reached = fleet_->ev_floor_reached();
  facts.qp_errors = errors.unexpected;
  facts.qp_errors_expected = errors.expected;
  facts.packet_hops = outcome_.world.packet_hops;
  facts.wall_s = seconds_since(started_);
  facts.rss_mb = rss_max_mb();
  outcome_.results = scenario::summarise(scenario_, fleet_->plan(), fleet_->scoreboard(), facts);
}

}  // namespace

void prepare_heap(const scenario::Scenario& scenario) {
  // kManyHosts: with more hosts, a run does not fit the CPU caches. kHostHeapBytes: the largest
  // heap of a host, without large tables.
  constexpr std::uint32_t kManyHosts = 1024;
  constexpr std::size_t kHostHeapBytes = 64 * 1024;
  if (scenario.topology.hosts >= kManyHosts)
    base::reserve_huge_heap(scenario.topology.hosts * kHostHeapBytes);
}

double rss_max_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

Result<Outcome> run_scenario(const scenario::Scenario& scenario, const RunOptions& options) {
  WEFT_TRY(Outcome outcome, Run(scenario, options).carry_out());
  if (scenario.expect.fault_free_share_min && options.baseline) {
    scenario::Scenario healthy = scenario;
    healthy.faults.clear();
    healthy.random_faults = {};
    RunOptions quiet;
    quiet.seed = options.seed;
    quiet.baseline = false;
    WEFT_TRY(const Outcome baseline, Run(healthy, quiet).carry_out());
    outcome.results.facts.fault_free_goodput_gbps = baseline.results.goodput_gbps;
  }
  outcome.broken = scenario::check(scenario.expect, outcome.results);
  return outcome;
}

}  // namespace weft::run
