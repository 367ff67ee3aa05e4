// One simulated run of a scenario: the fabric, the hosts, the faults and the judge together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "base/trace.h"
#include "judge/judge.h"
#include "scenario/results.h"
#include "scenario/scenario.h"
#include "sim/sim_world.h"

namespace weft::run {

struct RunOptions {
  std::uint64_t seed = 1;
  // Called with the records of each slice of time, when set.
  std::function<void(std::span<const TraceRecord>)> on_trace;
  // Called with what hosts sent in each slice, when set.
  std::function<void(std::span<const sim::SimWorld::Captured>)> on_captured;
  // Called after each slice with simulated time and flows left, when set.
  std::function<void(Duration, std::uint64_t)> on_progress;
  bool story = false;    // tell which ports and EVs went bad and came back
  bool baseline = true;  // if an expectation is a share of the fault-free rate, run that too
};

struct MemoryUse {
  std::vector<sim::MemoryPart> parts;
  double build_s = 0;  // wall time until the first event
};

struct Outcome {
  scenario::Results results;
  std::vector<std::string> broken;  // expectations that do not hold, one sentence each
  std::vector<judge::Complaint> complaints;
  std::vector<std::string> faults;  // those of the scenario and those drawn from the seed
  std::vector<std::string> stuck;   // flows that did not complete, and where they wait
  std::vector<std::string> story;   // PathStory, if options ask for it
  std::uint32_t passing = 0;        // and PathStory::passing()
  CounterTable counters;            // of all endpoints
  sim::SimCounters world;
  MemoryUse memory;
  bool held() const { return broken.empty() && complaints.empty() && stuck.empty(); }
};

// For runs of very many hosts: reserves one region for their memory. Call it once, before other
// threads start.
void prepare_heap(const scenario::Scenario& scenario);

// Errors: a scenario that cannot be built. Failures within the run are in the outcome.
Result<Outcome> run_scenario(const scenario::Scenario& scenario, const RunOptions& options);

// The most memory this process ever used, MB.
double rss_max_mb();

}  // namespace weft::run
