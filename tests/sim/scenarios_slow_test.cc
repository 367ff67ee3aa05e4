// Scenarios that cost some seconds, and the others with more seeds.
#include "scenario_files.h"

namespace weft::testing {
namespace {

class SlowScenarioFile : public ::testing::TestWithParam<std::string> {};

TEST_P(SlowScenarioFile, Holds) { expect_holds(GetParam()); }

INSTANTIATE_TEST_SUITE_P(, SlowScenarioFile, ::testing::ValuesIn(scenarios_of_cost("slow")),
                         test_name);

// What holds, holds for other seeds too.
class OtherSeeds : public ::testing::TestWithParam<std::string> {};

TEST_P(OtherSeeds, Hold) {
  const scenario::Scenario scenario = load(GetParam());
  for (std::uint64_t seed = 2; seed <= 4; ++seed) {
    const run::Outcome outcome = run(scenario, seed);
    EXPECT_TRUE(outcome.held()) << failures(outcome);
  }
}

INSTANTIATE_TEST_SUITE_P(, OtherSeeds, ::testing::ValuesIn(scenarios_of_cost("")), test_name);

}  // namespace
}  // namespace weft::testing
