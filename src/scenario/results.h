// Results: the outcome of a run as numbers, as JSON and as a table for people, and its comparison
// with the expectations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenario/scenario.h"
#include "scenario/scoreboard.h"
#include "scenario/workload.h"

namespace weft::scenario {

// Facts about a run that the world and the program know, apart from its flows.
struct RunFacts {
  std::uint64_t seed = 1;
  std::uint64_t trace_hash = 0;
  Duration simulated{};
  std::uint64_t packets_sent = 0;  // by endpoints, including control packets
  std::uint64_t retransmits = 0;
  // False if the switches do not report trims, drops and marks, as the kernel's do not.
  bool switches_report = true;
  std::uint64_t trims = 0, drops = 0, ecn_marks = 0;
  std::uint64_t ev_bad = 0;      // condemnations of an EV, total
  std::uint64_t planes_bad = 0;  // condemnations of a plane by a QP, total
  bool ev_floor_reached = false;
  std::uint64_t inflight_off = 0;  // the counter transport.unbalanced
  std::uint64_t qp_errors = 0, qp_errors_expected = 0;
  // Data and control packets that left a port, ports of hosts included.
  std::uint64_t packet_hops = 0;
  double wall_s = 0;
  double rss_mb = 0;
  // Goodput of the same run without faults, if the scenario asks for it.
  std::optional<double> fault_free_goodput_gbps{};
};

struct FctUs {
  double min = 0, mean = 0, p50 = 0, p99 = 0, max = 0;
};

struct Results {
  std::string scenario{};
  RunFacts facts{};
  std::uint64_t flows = 0;            // flows that must succeed, and whose both ends did not crash
  std::uint64_t completed = 0;        // of `flows`
  std::uint64_t flows_abandoned = 0;  // flows with an end that crashed
  std::uint64_t remote_access_errors = 0;
  FctUs fct_us{};  // completed flows: from first post to last completion
  double ideal_us = 0;
  double slowest_over_ideal = 0;  // all-reduce, all-to-all: of the whole operation
  double goodput_gbps = 0;  // payload of all flows except a victim's, first post to last completion
  double goodput_share = 0;              // of the framing limit
  double jain = 0;                       // Jain's index of all flows that began, except a victim's
  std::optional<double> victim_share{};  // share of the goodput that the victim would have alone
  double longest_pause_us = 0;
  // Goodput in the windows of [expect].
  std::optional<double> baseline_gbps{}, settled_gbps{}, recovered_gbps{};
  std::uint32_t hosts = 0;
  std::vector<double> series_gbps{};  // goodput in each step; empty unless messages repeat
  double series_step_us = 0;
};

Results summarise(const Scenario& scenario, const Plan& plan, const Scoreboard& scoreboard,
                  const RunFacts& facts);

// One sentence for each expectation that failed: "slowest flow took 1.23 of ideal, expected at most
// 1.10".
std::vector<std::string> check(const ExpectSpec& expect, const Results& results);

// One JSON object on one line; the order of the fields is fixed.
std::string to_json(const Results& results);
// A table for a terminal, with goodput over time if it was recorded.
std::string to_table(const Results& results);

}  // namespace weft::scenario
