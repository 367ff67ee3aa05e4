// `weft lab run`: runs a scenario on real sockets. A lab of network namespaces is made for the run
// and removed after it. The plan, the endpoints and the faults are the same as in `weft sim run`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "scenario/results.h"
#include "scenario/scenario.h"

namespace weft::run {

struct LabRunOptions {
  std::uint64_t seed = 1;
  std::string name;             // name of the lab
  std::uint32_t processes = 1;  // the hosts are divided among them; must be 1 if there are faults
};

struct LabOutcome {
  scenario::Results results;
  std::vector<std::string> broken;  // expectations that do not hold
  std::vector<std::string> stuck;
  std::vector<std::string> story;  // PathStory::lines(): ports and EVs that went bad or came back
  // EVs that became bad and good again within one phase
  std::uint32_t transient_count = 0;
  std::uint64_t bytes_wrong = 0;  // payload bytes that differ from those sent
  CounterTable counters;          // of all endpoints
  CounterTable world;             // of all sockets
  bool held() const { return broken.empty() && stuck.empty() && bytes_wrong == 0; }
};

// Errors: the scenario cannot run in a lab, or this machine cannot make the lab.
Result<LabOutcome> run_in_lab(const scenario::Scenario& scenario, const LabRunOptions& options);

}  // namespace weft::run
