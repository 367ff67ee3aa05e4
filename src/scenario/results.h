// Results: what came out of a run, as numbers, as JSON, as a table for people, and held against
// what was expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenario/scenario.h"
#include "scenario/scoreboard.h"
#include "scenario/workload.h"

namespace weft::scenario {

// What the world and the program know about a run, beside the flows.
struct RunFacts {
  std::uint64_t seed = 1;
  std::uint64_t trace_hash = 0;
  Duration simulated{};
  std::uint64_t packets_sent = 0;  // by endpoints, control included
  std::uint64_t retransmits = 0;
  // Of the switches, where they tell: the kernel's do not.
  bool switches_tell = true;
  std::uint64_t trims = 0, drops = 0, ecn_marks = 0;
  std::uint64_t ev_bad = 0;      // EVs condemned, in all
  std::uint64_t planes_bad = 0;  // planes condemned by a QP, in all
  bool ev_floor_reached = false;
  std::uint64_t inflight_off = 0;  // transport.unbalanced
  std::uint64_t qp_errors = 0, qp_errors_expected = 0;
  std::uint64_t packet_hops = 0;  // packets, data and control, leaving a port, hosts' included
  double wall_s = 0;
  double rss_mb = 0;
  // Of the same run without faults, where that is asked for.
  std::optional<double> fault_free_goodput_gbps{};
};

struct FctUs {
  double min = 0, mean = 0, p50 = 0, p99 = 0, max = 0;
};

struct Results {
  std::string scenario{};
  RunFacts facts{};
  std::uint64_t flows = 0;      // whose both ends live to the end, and that are meant to succeed
  std::uint64_t completed = 0;  // of these
  std::uint64_t flows_abandoned = 0;  // an end crashed
  std::uint64_t remote_access_errors = 0;
  FctUs fct_us{};  // first post to last completion, of completed flows
  double ideal_us = 0;
  double slowest_over_ideal = 0;  // all-reduce, all-to-all: of the whole
  double goodput_gbps = 0;   // payload of all flows but a victim's, first post to last completion
  double goodput_share = 0;  // of the framing limit
  double jain = 0;           // over the goodputs of flows that began, but a victim's
  std::optional<double> victim_share{};  // of what the victim's flow gets alone
  double longest_pause_us = 0;
  // In the windows of [expect].
  std::optional<double> baseline_gbps{}, settled_gbps{}, recovered_gbps{};
  std::uint32_t hosts = 0;
  std::vector<double> series_gbps{};  // goodput in each step; empty unless messages are repeated
  double series_step_us = 0;
};

Results summarise(const Scenario& scenario, const Plan& plan, const Scoreboard& scoreboard,
                  const RunFacts& facts);

// One sentence for each expectation that does not hold: "slowest flow took 1.23 of ideal, expected
// at most 1.10".
std::vector<std::string> check(const ExpectSpec& expect, const Results& results);

// One JSON object on one line, the fields in a fixed order.
std::string to_json(const Results& results);
// Lines for a terminal; goodput over time where it was kept.
std::string to_table(const Results& results);

}  // namespace weft::scenario
