// Scenarios that take less than two seconds each.
#include "scenario_files.h"

namespace weft::testing {
namespace {

class ScenarioFile : public ::testing::TestWithParam<std::string> {};

TEST_P(ScenarioFile, MeetsItsExpectations) { expect_holds(GetParam()); }

INSTANTIATE_TEST_SUITE_P(, ScenarioFile, ::testing::ValuesIn(scenarios_of_cost("")), test_name);

TEST(ScenarioFiles, CostTableNamesOnlyScenariosAndKnownCosts) {
  const auto names = scenario_names();
  ASSERT_FALSE(names.empty());
  for (const auto& row : table_of("tests/sim/scenario-cost.txt")) {
    ASSERT_EQ(row.size(), 2u) << row[0] << ": expected `slow NAME` or `soak NAME`";
    EXPECT_TRUE(row[0] == "slow" || row[0] == "soak") << row[0];
    EXPECT_NE(std::find(names.begin(), names.end(), row[1]), names.end())
        << row[1] << " is not a scenario";
  }
}

}  // namespace
}  // namespace weft::testing
