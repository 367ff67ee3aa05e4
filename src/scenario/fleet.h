// Fleet: every host of a scenario, with endpoints, QPs connected and receives posted, ready to be
// attached to a world. Knows nothing of which world that is. Owns the hosts, the plan and the
// scoreboard; hosts keep their address.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "fabric/topology.h"
#include "scenario/host.h"
#include "scenario/scenario.h"
#include "scenario/scoreboard.h"
#include "scenario/workload.h"

namespace weft::scenario {

class Fleet {
 public:
  struct Options {
    std::uint64_t seed = 1;
    // The memory of a host, asked once for each, when the plan exists. They outlive the fleet.
    std::function<world::Memory&(HostIndex, const Plan&)> memory;
    Trace* trace = nullptr;
    // What the world wants otherwise than the scenario says; may be empty.
    std::function<void(transport::QpConfig&)> suit_qp{};
  };
  // REQUIRES a scenario from parse() and its topology.
  static Result<std::unique_ptr<Fleet>> make(const Scenario& scenario,
                                             const fabric::Topology& topology,
                                             const Options& options);

  std::uint32_t host_count() const { return plan_.host_count(); }
  Host& host(HostIndex index) { return hosts_[index]; }
  const Host& host(HostIndex index) const { return hosts_[index]; }
  const Plan& plan() const { return plan_; }
  const Scoreboard& scoreboard() const { return scoreboard_; }
  // Nothing more is expected to happen.
  bool is_done() const { return scoreboard_.flows_left == 0; }
  // `host` crashed: its flows and those to it are abandoned.
  void on_crash(HostIndex host);
  // The addresses of a host's ports.
  std::vector<world::Address> addresses(HostIndex host) const;
  // The EVs of the first flow's first QP, in order: what `evs` of a fault counts.
  const std::vector<std::uint32_t>& first_flow_evs() const { return first_flow_evs_; }

  // --- at the end ------------------------------------------------------------------------------
  struct QpErrors {
    std::uint32_t unexpected = 0,
                  expected = 0;  // expected: the peer crashed, or the flow was meant to fail
  };
  QpErrors qp_errors() const;
  // Some QP that sends was down to the share of EVs that is never taken away.
  bool ev_floor_reached() const;
  // Summed over all endpoints.
  CounterTable counters() const;
  // Bytes of all hosts together; `endpoint` has what the hosts themselves take.
  transport::Endpoint::MemoryView memory() const;
  // One line for each host that waits for something, at most `count_max`.
  std::vector<std::string> stuck(std::size_t count_max) const;

 private:
  explicit Fleet(const Scenario& scenario) : scenario_(scenario) {}
  Result<void> build(const fabric::Topology& topology, const Options& options);
  Result<void> create_qps(const fabric::Topology& topology, const Options& options, HostIndex host,
                          Prng prng);
  Result<void> connect_qps(HostIndex host);

  Scenario scenario_;
  Plan plan_;
  Scoreboard scoreboard_;
  std::deque<Host> hosts_;
  std::vector<bool> crashed_;
  // What the two ends of a connection tell each other; freed after set-up.
  struct Pair {
    std::uint32_t qpn[2] = {0, 0};
    Psn first_psn[2];
  };
  std::vector<Pair> pairs_;
  std::vector<std::uint32_t> first_flow_evs_;
};

}  // namespace weft::scenario
