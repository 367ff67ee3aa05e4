// The faults of scenario files in a lab: the lab carries out every event of a plan or refuses it by
// name, and after the last fault nothing is broken.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "lab/lab_faults.h"
#include "lab/lab_plan.h"
#include "scenario/faults.h"
#include "scenario/parse.h"

namespace weft::net {
namespace {

using scenario::FaultKind;

constexpr FaultKind kRefused[] = {
    FaultKind::kBurstLoss, FaultKind::kReorder,   FaultKind::kDuplicate, FaultKind::kCorrupt,
    FaultKind::kHostPause, FaultKind::kHostCrash, FaultKind::kEvLoss,    FaultKind::kControlLoss};

bool asks_for_too_much(const scenario::Scenario& scenario) {
  for (const scenario::FaultSpec& fault : scenario.faults) {
    for (const FaultKind kind : kRefused) {
      if (fault.kind == kind) return true;
    }
  }
  return false;
}

TEST(LabScenarios, FaultsAreCarriedOutOrRefusedByName) {
  std::set<FaultKind> taken;
  std::size_t refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator("scenarios")) {
    if (entry.path().extension() != ".toml") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const auto scenario = scenario::parse(text.str(), entry.path().string()).value();
    lab::LabSpec spec;
    spec.topology = scenario.topology;
    // A rate that a lab can enforce; the links of the topology stay the same.
    spec.topology.host_rate = spec.topology.fabric_rate = Rate::gbps(1);
    const auto plan = lab::LabPlan::make(spec);
    if (!plan) continue;  // the fabric is too large for a lab
    const auto faults = scenario::make_fault_plan(scenario.faults, plan->topology(), {});
    lab::LabFaults broken;
    bool all_taken = true, ever_broken = false;
    for (const fabric::FaultEvent& event : faults.events) {
      const auto done = broken.apply(*plan, event);
      EXPECT_TRUE(done || done.error().kind == ErrorKind::kUnsupported) << entry.path();
      all_taken = all_taken && done.has_value();
      ever_broken = ever_broken || !broken.empty();
    }
    EXPECT_EQ(all_taken, !asks_for_too_much(scenario)) << entry.path();
    if (!all_taken) {
      ++refused;
      continue;
    }
    EXPECT_EQ(ever_broken, !scenario.faults.empty()) << entry.path();
    EXPECT_TRUE(broken.empty() || faults.healed_at == kNever) << entry.path();
    for (const scenario::FaultSpec& fault : scenario.faults) taken.insert(fault.kind);
  }
  // Without these kinds of faults the test would cover little.
  for (const FaultKind kind : {FaultKind::kLinkDown, FaultKind::kPlaneDown, FaultKind::kSwitchDown,
                               FaultKind::kLinkFlap, FaultKind::kLoss})
    EXPECT_TRUE(taken.contains(kind)) << static_cast<int>(kind);
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace weft::net
