#include "run/lab_run.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <deque>

#include "lab/lab.h"
#include "net/udp_world.h"
#include "os/clock.h"
#include "os/interruption.h"
#include "os/say.h"
#include "os/waiter.h"
#include "run/fault_thread.h"
#include "run/fleet.h"
#include "run/lab_host.h"
#include "run/lab_parts.h"
#include "run/lab_spec.h"
#include "run/path_story.h"
#include "run/switch_config.h"
#include "scenario/faults.h"
#include "scenario/settings.h"
#include "transport/software_ends.h"

namespace weft::run {
namespace {

using fabric::HostIndex;

// A lab that its owner takes down. If the owner is killed, the next lab removes what remains of it.
class OwnLab {
 public:
  static Result<std::unique_ptr<OwnLab>> up(const lab::LabSpec& spec,
                                            const softswitch::LiveFabricConfig& fabric) {
    const bool software = spec.switches == lab::LabSwitches::kSoftware;
    WEFT_TRY(lab::Lab lab,
             lab::Lab::up(spec, software ? &fabric : nullptr, lab::LabLife::kWithCreator));
    return std::unique_ptr<OwnLab>(new OwnLab(std::move(lab), spec.name));
  }
  ~OwnLab() {
    if (const auto down = lab::Lab::down(name_); !down)
      os::say("weft: {}; `weft lab down --name {}` tries again\n", down.error().message, name_);
  }
  lab::Lab& lab() { return lab_; }

 private:
  OwnLab(lab::Lab lab, std::string name) : lab_(std::move(lab)), name_(std::move(name)) {}
  lab::Lab lab_;
  std::string name_;
};

class LabRun {
 public:
  LabRun(const scenario::Scenario& scenario, const LabRunOptions& options)
      : scenario_(scenario), options_(options), pattern_(options.seed) {}

  Result<LabOutcome> carry_out();

 private:
  Result<void> build();
  Result<void> open_worlds(const fabric::Topology& topology);
  Result<void> drive();
  // Flows between hosts of other processes are never done in this process, so they stay in
  // flows_left.
  bool is_done() const { return fleet_->scoreboard().flows_left <= flows_of_others_; }
  PartReport report() const;
  bool pass();
  void sleep(Time until);
  LabOutcome finish(const PartReport& all);
  Time now() const { return waiter_.clock(); }

  const scenario::Scenario& scenario_;
  const LabRunOptions& options_;
  AddressPattern pattern_;
  std::unique_ptr<OwnLab> lab_;
  Trace trace_;
  PathStory story_;
  std::deque<LabMemory> memories_;
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<LabParts> parts_;
  std::deque<LabNode> nodes_;
  std::vector<std::unique_ptr<net::UdpWorld>> worlds_;
  Time slept_until_{};              // passed to the worlds in the next pass()
  bool software_switches_ = false;  // trim, and count their drops
  scenario::FaultPlan faults_;
  std::uint64_t flows_of_others_ = 0;
  Time epoch_;
  os::Waiter waiter_;
};

Result<void> LabRun::build() {
  WEFT_TRY(const auto topology, fabric::Topology::make(scenario_.topology));
  WEFT_TRY(const lab::LabSpec spec, lab_spec(scenario_, options_.name));
  WEFT_TRY(lab_, OwnLab::up(spec, live_fabric_config(scenario_, topology, options_.seed)));
  WEFT_CHECK(lab_->lab().enter());
  software_switches_ = spec.switches == lab::LabSwitches::kSoftware;
  const auto memory_of = [this](HostIndex host, const scenario::Plan& plan) -> world::Memory& {
    return memories_.emplace_back(plan, host, pattern_);
  };
  WEFT_TRY(fleet_, Fleet::make(scenario_, topology,
                               {.seed = options_.seed,
                                .memory = memory_of,
                                .trace = &trace_,
                                .adjust_qp = [this](transport::QpConfig& config) {
                                  configure_for_process(config, transport::PeerKind::kSoftware);
                                  config.sack_bytes = 0;  // 0: the peer kind's value
                                  config.nscc.trimming = software_switches_;
                                }}));
  faults_ = scenario::make_fault_plan(scenario_.faults, topology, fleet_->first_flow_evs());
  if (options_.processes > 1 && !faults_.events.empty()) {
    return Error{ErrorKind::kInvalid,
                 "--processes: this scenario has faults, and their story is told by one process; "
                 "leave it out"};
  }
  WEFT_TRY(parts_, LabParts::make(*fleet_, options_.processes));
  // The start of the run, for all processes.
  epoch_ = os::clock_now();
  waiter_ = os::Waiter({.epoch = epoch_});
  WEFT_CHECK(parts_->split());
  return open_worlds(topology);
}

Result<void> LabRun::open_worlds(const fabric::Topology& topology) {
  for (HostIndex host = 0; host < fleet_->host_count(); ++host) {
    if (!parts_->is_mine(host)) {
      flows_of_others_ += fleet_->plan().ops_of(host).size();
      continue;
    }
    net::UdpWorldConfig config;
    config.ev_carrier = fabric::EvCarrier::kSrv6;
    config.place = net::FabricPlace{topology, host};
    config.network_namespace = lab_->lab().namespace_path(host);
    config.mtu = scenario_.transport.mtu;
    config.epoch = epoch_;
    config.shared_memory = false;  // each host must behave like a separate machine
    WEFT_TRY(auto world, net::UdpWorld::open(config));
    WEFT_CHECK(
        world->attach(fleet_->addresses(host), nodes_.emplace_back(fleet_->node(host), pattern_)));
    worlds_.push_back(std::move(world));
  }
  return {};
}

bool LabRun::pass() {
  bool moved = false;
  for (auto& world : worlds_) moved |= world->pass(slept_until_);
  slept_until_ = Time();
  return moved;
}

void LabRun::sleep(Time until) {
  std::vector<pollfd> fds;
  bool waits = true;
  for (std::size_t i = 0; i < worlds_.size(); ++i) {
    waits &= worlds_[i]->prepare_wait();
    fds.push_back({.fd = worlds_[i]->wait_fd(), .events = POLLIN, .revents = 0});
    until = std::min(until, nodes_[i].next_deadline());
  }
  slept_until_ = until;  // by intention: the worlds then do not count this sleep as lateness
  if (waits) waiter_.sleep(fds, until);
  for (auto& world : worlds_) world->end_wait();
}

// Runs until every flow and every fault has ended, or the time limit is reached. Then waits a
// moment for the last acknowledgements and for EVs to become usable again.
Result<void> LabRun::drive() {
  constexpr Duration kNap = Duration::ms(1), kSettle = Duration::ms(300);
  FaultThread faults(lab_->lab(), faults_.events, epoch_);
  std::uint32_t phase = 0;
  const Time end = Time::from_start(scenario_.run.time_limit);
  Time done_at = kNever;
  bool said = false;
  while (now() < end && !os::interrupted() && !parts_->given_up() &&
         (done_at == kNever || now() < done_at + kSettle)) {
    if (!pass()) sleep(now() + kNap);
    for (const std::uint32_t changes = faults.changes(); phase < changes; ++phase)
      story_.next_phase();
    story_.read(trace_.records());
    trace_.clear();
    if (!said && is_done() && faults.is_over()) {
      said = true;
      parts_->say_done();
    }
    if (done_at == kNever && said && parts_->all_done()) done_at = now();
  }
  return faults.result();
}

PartReport LabRun::report() const {
  PartReport out;
  out.flows = fleet_->scoreboard().flows;
  out.series = fleet_->scoreboard().series.bytes();
  out.errors = fleet_->qp_errors();
  out.ev_floor_reached = fleet_->ev_floor_reached();
  for (HostIndex host = 0; host < fleet_->host_count(); ++host) {
    if (!parts_->is_mine(host)) continue;
    add_values(fleet_->node(host).endpoint().counters(), out.counters);
    if (std::string line = fleet_->host(host).stuck(fleet_->node(host).endpoint());
        !is_done() && !line.empty())
      out.stuck.push_back(std::move(line));
  }
  for (const auto& world : worlds_) add_values(world->counters(), out.world);
  for (const LabMemory& memory : memories_) out.bytes_wrong += memory.bytes_wrong();
  return out;
}

LabOutcome LabRun::finish(const PartReport& all) {
  LabOutcome out;
  out.story = story_.lines();
  out.transient_count = story_.transient_count();
  out.counters = all.counters;
  out.world = all.world;
  out.bytes_wrong = all.bytes_wrong;
  out.stuck = all.stuck;
  scenario::RunFacts facts;
  facts.seed = options_.seed;
  facts.simulated = now().since_start();
  facts.packets_sent = value_of(out.world, "net.packets_sent");
  facts.retransmits = value_of(out.counters, "transport.retransmits");
  facts.ev_bad = value_of(out.counters, "transport.evs_condemned");
  facts.planes_bad = value_of(out.counters, "transport.planes_condemned");
  facts.ev_floor_reached = all.ev_floor_reached;
  const auto traffic = lab_->lab().traffic();
  facts.switches_report = software_switches_ && traffic;
  if (traffic) {
    for (const lab::LabTraffic& link : *traffic) {
      facts.trims += link.trims;
      facts.ecn_marks += link.ecn_marks;
      facts.drops += link.drops;
    }
  }
  facts.qp_errors = all.errors.unexpected;
  facts.qp_errors_expected = all.errors.expected;
  scenario::Scoreboard board;
  board.flows = all.flows;
  const scenario::Series& own = fleet_->scoreboard().series;
  board.series = scenario::Series(own.step(), all.series.size());
  for (std::size_t i = 0; i < all.series.size(); ++i)
    board.series.add(Time() + own.step() * static_cast<std::int64_t>(i), all.series[i]);
  out.results = scenario::summarise(scenario_, fleet_->plan(), board, facts);
  // The slowdown compared with the ideal is checked in simulations only: here other programs share
  // the cores.
  scenario::ExpectSpec expect = scenario_.expect;
  if (expect.slowest_over_ideal_max) {
    os::say("slowest_over_ideal_max is for the simulator: not held to here\n");
    expect.slowest_over_ideal_max.reset();
  }
  out.broken = scenario::check(expect, out.results);
  return out;
}

Result<LabOutcome> LabRun::carry_out() {
  os::catch_interruption();
  const auto built = build();
  auto ran = built ? drive() : built;
  if (parts_ == nullptr) return ran.error();
  if (!ran) parts_->give_up();
  if (!parts_->is_first()) {
    if (!ran) {
      os::say("weft: {}\n", ran.error().message);
      std::fflush(nullptr);
      _exit(1);  // only the first process removes the lab
    }
    parts_->leave(report());
  }
  WEFT_CHECK(ran);
  if (os::interrupted()) return Error{ErrorKind::kSystem, "interrupted; the lab is taken down"};
  PartReport all = report();
  WEFT_CHECK(parts_->gather(all));
  return finish(all);
}

}  // namespace

Result<LabOutcome> run_in_lab(const scenario::Scenario& scenario, const LabRunOptions& options) {
  return LabRun(scenario, options).carry_out();
}

}  // namespace weft::run
