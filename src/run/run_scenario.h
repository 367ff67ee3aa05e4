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
  // If set, called after each slice of simulated time with the trace records of the slice.
  std::function<void(std::span<const TraceRecord>)> on_trace;
  // If set, called after each slice with the packets that hosts sent in the slice.
  std::function<void(std::span<const sim::SimWorld::Captured>)> on_captured;
  // If set, called after each slice with the simulated time and the number of flows not yet done.
  std::function<void(Duration, std::uint64_t)> on_progress;
  bool story = false;  // fill Outcome::story
  // if an expectation is relative to a run without faults, also run without faults
  bool baseline = true;
};

struct MemoryUse {
  std::vector<sim::MemoryPart> parts;
  double build_s = 0;  // wall time until the first event
};

struct Outcome {
  scenario::Results results;
  std::vector<std::string> broken;  // expectations that do not hold, one sentence each
  std::vector<judge::Complaint> complaints;
  std::vector<std::string> faults;  // the scenario's faults and those drawn from the seed
  std::vector<std::string> stuck;   // flows that did not complete, and what they wait for
  std::vector<std::string> story;   // PathStory::lines(), if RunOptions::story is set
  // EVs that became bad and good again within one phase; counted if RunOptions::story is set
  std::uint32_t transient_count = 0;
  CounterTable counters;  // of all endpoints
  sim::SimCounters world;
  MemoryUse memory;
  bool held() const { return broken.empty() && complaints.empty() && stuck.empty(); }
};

// For runs of very many hosts: reserves one region of memory for the heap. Call it once, before
// other threads start.
void prepare_heap(const scenario::Scenario& scenario);

// Errors: the scenario cannot be built. What fails during the run is in the Outcome.
Result<Outcome> run_scenario(const scenario::Scenario& scenario, const RunOptions& options);

// The largest resident memory of this process so far, in MB.
double rss_max_mb();

}  // namespace weft::run
