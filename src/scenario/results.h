// Results: the outcome of a run as numbers, printed as JSON or as a table, and compared with the
// scenario's expectations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenario/scenario.h"
#include "scenario/scoreboard.h"
#include "scenario/workload.h"

namespace weft::scenario {

// Facts about a run that do not come from its flows: from the world, the endpoints and the process.
struct RunFacts {
  std::uint64_t seed = 1;
  std::uint64_t trace_hash = 0;
  Duration simulated{};
  std::uint64_t packets_sent = 0;  // by all endpoints, including control packets
  std::uint64_t retransmits = 0;
  // False if the switches do not count trims, drops and marks: a kernel's switches do not.
  bool switches_report = true;
  std::uint64_t trims = 0, drops = 0, ecn_marks = 0;
  std::uint64_t ev_bad = 0;      // how many times an EV became ASSUMED_BAD
  std::uint64_t planes_bad = 0;  // how many times a QP took all EVs of a plane as bad
  bool ev_floor_reached = false;
  // the counter transport.unbalanced: bytes in flight that were not 0 on an idle QP
  std::uint64_t inflight_off = 0;
  std::uint64_t qp_errors = 0, qp_errors_expected = 0;
  // Data and control packets that left a port of a switch or host.
  std::uint64_t packet_hops = 0;
  double wall_s = 0;
  double rss_mb = 0;
  // Goodput of the same run without faults, if the scenario asks for that run.
  std::optional<double> fault_free_goodput_gbps{};
};

struct FctUs {
  double min = 0, mean = 0, p50 = 0, p99 = 0, max = 0;
};

struct Results {
  std::string scenario{};
  RunFacts facts{};
  std::uint64_t flows = 0;      // flows that must succeed, without those whose host or peer crashed
  std::uint64_t completed = 0;  // how many of `flows` completed
  std::uint64_t flows_abandoned = 0;  // flows whose host or peer crashed
  std::uint64_t remote_access_errors = 0;
  // flow completion times, from first post to last completion; completed flows only
  FctUs fct_us{};
  double ideal_us = 0;
  // all-reduce and all-to-all: the time of the whole collective over its ideal
  double slowest_over_ideal = 0;
  // payload of all flows except victims, over the time from first post to last completion
  double goodput_gbps = 0;
  double goodput_share = 0;  // goodput relative to the largest goodput that framing allows
  double jain = 0;           // Jain's fairness index of all flows that began, except victims
  // the victim's goodput relative to its goodput without other flows
  std::optional<double> victim_share{};
  double longest_pause_us = 0;
  // Average goodput in the time windows that [expect] sets.
  std::optional<double> baseline_gbps{}, settled_gbps{}, recovered_gbps{};
  std::uint32_t hosts = 0;
  std::vector<double> series_gbps{};  // goodput in each step of time; empty unless messages repeat
  double series_step_us = 0;
};

Results summarise(const Scenario& scenario, const Plan& plan, const Scoreboard& scoreboard,
                  const RunFacts& facts);

// One sentence for each expectation that is not met: "slowest flow took 1.23 of ideal, expected at
// most 1.10".
std::vector<std::string> check(const ExpectSpec& expect, const Results& results);

// One JSON object on one line; the order of the fields is fixed.
std::string to_json(const Results& results);
// A table for a terminal. It includes goodput over time if that was recorded.
std::string to_table(const Results& results);

}  // namespace weft::scenario
