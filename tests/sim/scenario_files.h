// Makes a test of each file in scenarios/: its expectations are met, no QP is stuck, and the judge
// has no complaint. tests/sim/scenario-cost.txt lists the files that take too long for every build.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../support/run_file.h"

namespace weft::testing {

// The file's entry in scenario-cost.txt, "slow" or "soak"; "" if it has none.
inline std::string cost_of(const std::string& name) {
  for (const auto& row : table_of("tests/sim/scenario-cost.txt")) {
    if (row.size() == 2 && row[1] == name) return row[0];
  }
  return "";
}

inline std::vector<std::string> scenarios_of_cost(const std::string& cost) {
  std::vector<std::string> names;
  for (const std::string& name : scenario_names()) {
    if (cost_of(name) == cost) names.push_back(name);
  }
  return names;
}

// The scenario's name as GoogleTest permits it.
inline std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

inline void expect_holds(const std::string& name) {
  const scenario::Scenario scenario = load(name);
  const run::Outcome outcome = run(scenario, scenario.run.seed);
  EXPECT_TRUE(outcome.held()) << failures(outcome);
}

}  // namespace weft::testing
