// Scenarios that take some seconds, and all cheap scenarios with other seeds.
#include "scenario_files.h"

namespace weft::testing {
namespace {

class SlowScenarioFile : public ::testing::TestWithParam<std::string> {};

TEST_P(SlowScenarioFile, MeetsItsExpectations) { expect_holds(GetParam()); }

INSTANTIATE_TEST_SUITE_P(, SlowScenarioFile, ::testing::ValuesIn(scenarios_of_cost("slow")),
                         test_name);

// The expectations of a scenario must not depend on its seed.
class OtherSeeds : public ::testing::TestWithParam<std::string> {};

TEST_P(OtherSeeds, MeetTheExpectations) {
  const scenario::Scenario scenario = load(GetParam());
  for (std::uint64_t seed = 2; seed <= 4; ++seed) {
    const run::Outcome outcome = run(scenario, seed);
    EXPECT_TRUE(outcome.held()) << failures(outcome);
  }
}

INSTANTIATE_TEST_SUITE_P(, OtherSeeds, ::testing::ValuesIn(scenarios_of_cost("")), test_name);

}  // namespace
}  // namespace weft::testing
