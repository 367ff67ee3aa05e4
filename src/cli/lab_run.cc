#include "cli/lab_run.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

#include "cli/interruption.h"
#include "cli/lab_host.h"
#include "cli/lab_spec.h"
#include "cli/path_story.h"
#include "cli/switch_config.h"
#include "net/clock.h"
#include "net/lab.h"
#include "net/udp_world.h"
#include "scenario/faults.h"
#include "scenario/fleet.h"
#include "scenario/settings.h"
#include "transport/software_ends.h"

namespace weft::cli {
namespace {

using fabric::HostIndex;

// A lab that goes with whoever made it.
class OwnLab {
 public:
  static Result<std::unique_ptr<OwnLab>> up(const net::LabSpec& spec,
                                            const net::LiveFabricConfig& fabric) {
    const bool software = spec.switches == net::LabSwitches::kSoftware;
    WEFT_TRY(net::Lab lab, net::Lab::up(spec, software ? &fabric : nullptr));
    return std::unique_ptr<OwnLab>(new OwnLab(std::move(lab), spec.name));
  }
  ~OwnLab() {
    if (const auto down = net::Lab::down(name_); !down)
      fmt::print(stderr, "weft: {}; `weft lab down --name {}` tries again\n", down.error().message,
                 name_);
  }
  net::Lab& lab() { return lab_; }

 private:
  OwnLab(net::Lab lab, std::string name) : lab_(std::move(lab)), name_(std::move(name)) {}
  net::Lab lab_;
  std::string name_;
};

// Carries a plan's faults out at their times, beside the hosts: an `ip` takes milliseconds.
class FaultThread {
 public:
  FaultThread(net::Lab& lab, std::span<const fabric::FaultEvent> events, Time epoch)
      : lab_(lab),
        events_(events.begin(), events.end()),
        epoch_(epoch),
        thread_([this] { run(); }) {}
  ~FaultThread() {
    stop_ = true;
    thread_.join();
  }
  // How often faults have changed so far.
  std::uint32_t changes() const { return changes_; }
  bool is_over() const { return over_; }
  Result<void> result() {
    const std::lock_guard lock(mutex_);
    return result_;
  }

 private:
  void run() {
    std::size_t next = 0;
    while (next < events_.size() && !stop_) {
      const Time due = events_[next].at;
      if (net::clock_now() - epoch_.since_start() < due) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        continue;
      }
      std::size_t end = next;
      while (end < events_.size() && events_[end].at == due) ++end;
      // A phase begins when its first fault may begin to act.
      ++changes_;
      const auto done = lab_.apply(std::span(events_).subspan(next, end - next));
      if (!done) {
        const std::lock_guard lock(mutex_);
        result_ = done.error();
        break;
      }
      next = end;
    }
    over_ = true;
  }

  net::Lab& lab_;
  std::vector<fabric::FaultEvent> events_;
  Time epoch_;
  std::atomic<bool> stop_ = false, over_ = false;
  std::atomic<std::uint32_t> changes_ = 0;
  std::mutex mutex_;
  Result<void> result_;
  std::thread thread_;
};

class LabRun {
 public:
  LabRun(const scenario::Scenario& scenario, const LabRunOptions& options)
      : scenario_(scenario), options_(options), pattern_(options.seed) {}

  Result<LabOutcome> carry_out();

 private:
  Result<void> build();
  Result<void> drive();
  bool pass();
  void sleep(Time until);
  LabOutcome finish();
  Time now() const { return net::clock_now() - epoch_.since_start(); }

  const scenario::Scenario& scenario_;
  const LabRunOptions& options_;
  AddressPattern pattern_;
  std::unique_ptr<OwnLab> lab_;
  Trace trace_;
  PathStory story_;
  std::deque<LabMemory> memories_;
  std::unique_ptr<scenario::Fleet> fleet_;
  std::deque<LabNode> nodes_;
  std::vector<std::unique_ptr<net::UdpWorld>> worlds_;
  scenario::FaultPlan faults_;
  Time epoch_;
};

Result<void> LabRun::build() {
  WEFT_TRY(const auto topology, fabric::Topology::make(scenario_.topology));
  WEFT_TRY(const net::LabSpec spec, lab_spec(scenario_, options_.name));
  WEFT_TRY(lab_, OwnLab::up(spec, live_fabric_config(scenario_, topology, options_.seed)));
  WEFT_CHECK(lab_->lab().enter());
  const bool trims = spec.switches == net::LabSwitches::kSoftware;
  const auto memory_of = [this](HostIndex host, const scenario::Plan& plan) -> world::Memory& {
    return memories_.emplace_back(plan, host, pattern_);
  };
  WEFT_TRY(fleet_,
           scenario::Fleet::make(scenario_, topology,
                                 {.seed = options_.seed,
                                  .memory = memory_of,
                                  .trace = &trace_,
                                  .suit_endpoint = [](auto& config) { suit_software(config); },
                                  .suit_qp =
                                      [trims](transport::QpConfig& config) {
                                        suit_software(config);
                                        config.nscc.trimming = trims;
                                      }}));
  faults_ = scenario::make_fault_plan(scenario_.faults, topology, fleet_->first_flow_evs());
  // Time begins when the lab stands.
  epoch_ = net::clock_now();
  for (HostIndex host = 0; host < fleet_->host_count(); ++host) {
    net::UdpWorldConfig config;
    config.ev_mode = net::EvMode::kSrv6;
    config.place = net::FabricPlace{topology, host};
    config.network_namespace = lab_->lab().namespace_path(host);
    config.mtu = scenario_.transport.mtu;
    config.epoch = epoch_;
    config.shared_memory = false;  // each is a host of its own
    WEFT_TRY(auto world, net::UdpWorld::open(config));
    WEFT_CHECK(
        world->attach(fleet_->addresses(host), nodes_.emplace_back(fleet_->host(host), pattern_)));
    worlds_.push_back(std::move(world));
  }
  return {};
}

bool LabRun::pass() {
  bool moved = false;
  for (auto& world : worlds_) moved |= world->pass();
  return moved;
}

void LabRun::sleep(Time until) {
  std::vector<pollfd> fds;
  for (std::size_t i = 0; i < worlds_.size(); ++i) {
    fds.push_back({.fd = worlds_[i]->wait_fd(), .events = POLLIN, .revents = 0});
    until = std::min(until, nodes_[i].next_deadline());
  }
  const std::int64_t ns = std::max<std::int64_t>((until - now()).ns(), 0);
  const timespec timeout{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  ppoll(fds.data(), fds.size(), &timeout, nullptr);
}

// Until every flow is done and every fault over, or the time is up; then a moment for the last
// acknowledgements and revivals.
Result<void> LabRun::drive() {
  constexpr Duration kNap = Duration::ms(1), kSettle = Duration::ms(300);
  FaultThread faults(lab_->lab(), faults_.events, epoch_);
  std::uint32_t phase = 0;
  const Time end = Time::from_start(scenario_.run.time_limit);
  Time done_at = kNever;
  while (now() < end && !interrupted() && (done_at == kNever || now() < done_at + kSettle)) {
    if (!pass()) sleep(now() + kNap);
    for (const std::uint32_t changes = faults.changes(); phase < changes; ++phase)
      story_.next_phase();
    story_.read(trace_.records());
    trace_.clear();
    if (done_at == kNever && fleet_->is_done() && faults.is_over()) done_at = now();
  }
  return faults.result();
}

LabOutcome LabRun::finish() {
  LabOutcome out;
  out.story = story_.lines();
  out.counters = fleet_->counters();
  for (const auto& world : worlds_) {
    const CounterTable table = world->counters();
    if (out.world.empty()) out.world.assign(table.size(), {});
    for (std::size_t i = 0; i < table.size(); ++i)
      out.world[i] = {table[i].name, table[i].unit, out.world[i].value + table[i].value};
  }
  for (const LabMemory& memory : memories_) out.bytes_wrong += memory.bytes_wrong();
  if (!fleet_->is_done()) out.stuck = fleet_->stuck(8);
  const auto errors = fleet_->qp_errors();
  scenario::RunFacts facts;
  facts.seed = options_.seed;
  facts.simulated = now().since_start();
  facts.packets_sent = value_of(out.world, "net.packets_sent");
  facts.retransmits = value_of(out.counters, "transport.retransmits");
  facts.ev_bad = value_of(out.counters, "transport.evs_condemned");
  facts.planes_bad = value_of(out.counters, "transport.planes_condemned");
  facts.ev_floor_reached = fleet_->ev_floor_reached();
  if (const auto traffic = lab_->lab().traffic()) {
    for (const net::LabTraffic& link : *traffic) {
      facts.trims += link.trims;
      facts.ecn_marks += link.ecn_marks;
      facts.drops += link.drops;
    }
  }
  facts.qp_errors = errors.unexpected;
  facts.qp_errors_expected = errors.expected;
  out.results = scenario::summarise(scenario_, fleet_->plan(), fleet_->scoreboard(), facts);
  out.broken = scenario::check(scenario_.expect, out.results);
  return out;
}

Result<LabOutcome> LabRun::carry_out() {
  catch_interruption();
  WEFT_CHECK(build());
  WEFT_CHECK(drive());
  if (interrupted()) return Error{ErrorKind::kSystem, "interrupted; the lab is taken down"};
  return finish();
}

}  // namespace

Result<LabOutcome> run_in_lab(const scenario::Scenario& scenario, const LabRunOptions& options) {
  return LabRun(scenario, options).carry_out();
}

}  // namespace weft::cli
