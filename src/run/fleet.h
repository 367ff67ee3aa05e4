// Fleet: all hosts of a scenario, with endpoints, connected QPs and posted receives, ready to be
// attached to a world of any kind. Owns the plan, the scoreboard, and for each host its program and
// the node that runs the program. Programs and nodes do not move in memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "engine/node_rdma.h"
#include "fabric/topology.h"
#include "scenario/host.h"
#include "scenario/scenario.h"
#include "scenario/scoreboard.h"
#include "scenario/workload.h"

namespace weft::run {

using scenario::HostIndex;
using scenario::Plan;
using scenario::Scoreboard;

class Fleet {
 public:
  struct Options {
    std::uint64_t seed = 1;
    // Returns the memory of a host; it must outlive the fleet. Called once for each host, after the
    // plan is made.
    std::function<world::Memory&(HostIndex, const Plan&)> memory;
    Trace* trace = nullptr;
    // Changes the scenario's QP configuration as the world needs it; may be empty.
    std::function<void(transport::QpConfig&)> adjust_qp{};
  };
  // REQUIRES a scenario from scenario::parse(), and the topology of that scenario.
  static Result<std::unique_ptr<Fleet>> make(const scenario::Scenario& scenario,
                                             const fabric::Topology& topology,
                                             const Options& options);

  std::uint32_t host_count() const { return plan_.host_count(); }
  const scenario::Host& host(HostIndex index) const { return *hosts_[index].program; }
  // The node that the world drives.
  engine::NodeRdma& node(HostIndex index) { return hosts_[index].node; }
  const engine::NodeRdma& node(HostIndex index) const { return hosts_[index].node; }
  const Plan& plan() const { return plan_; }
  const Scoreboard& scoreboard() const { return scoreboard_; }
  // True when every flow has completed, failed or been abandoned.
  bool is_done() const { return scoreboard_.flows_left == 0; }
  // Abandons all flows from and to a host that crashed.
  void on_crash(HostIndex host);
  // The addresses of a host's ports.
  std::vector<world::Address> addresses(HostIndex host) const;
  // The EVs of the first QP of the first flow, in order. A fault's `evs` are indices into this
  // list.
  const std::vector<std::uint32_t>& first_flow_evs() const { return first_flow_evs_; }

  // --- results at the end of a run -------------------------------------------------------------
  struct QpErrors {
    std::uint32_t unexpected = 0,
                  expected = 0;  // the peer crashed, or the flow is meant to fail
  };
  QpErrors qp_errors() const;
  // True if a sending QP was reduced to its `ev_min_active` EVs.
  bool ev_floor_reached() const;
  // The sum over all endpoints.
  CounterTable counters() const;
  // The memory of all hosts together; `endpoint` includes the hosts' programs and nodes.
  transport::Endpoint::MemoryView memory() const;
  // At most `count_max` lines: one for each host that waits for something.
  std::vector<std::string> stuck(std::size_t count_max) const;

 private:
  explicit Fleet(const scenario::Scenario& scenario) : scenario_(scenario) {}
  Result<void> build(const fabric::Topology& topology, const Options& options);
  Result<void> create_qps(const fabric::Topology& topology, const Options& options, HostIndex host,
                          Prng prng);
  Result<void> connect_qps(HostIndex host);

  scenario::Scenario scenario_;
  Plan plan_;
  Scoreboard scoreboard_;
  struct Seat {
    Seat(const transport::EndpointConfig& config, world::Memory& memory, Trace* trace)
        : node(config, memory, trace) {}
    engine::NodeRdma node;
    std::optional<scenario::Host> program;
  };
  void add_host(HostIndex host, const transport::EndpointConfig& config, const Options& options);
  std::deque<Seat> hosts_;
  std::vector<bool> crashed_;
  // What the two ends of a connection need to know of each other; freed after set-up.
  struct Pair {
    std::uint32_t qpn[2] = {0, 0};
    Psn first_psn[2];
  };
  std::vector<Pair> pairs_;
  std::vector<std::uint32_t> first_flow_evs_;
};

}  // namespace weft::run
