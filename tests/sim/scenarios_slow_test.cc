// Scenarios that cost some seconds, and the counter-example: what one path a flow does to a
// permutation.
#include "scenario_files.h"

namespace weft::testing {
namespace {

class SlowScenarioFile : public ::testing::TestWithParam<std::string> {};

TEST_P(SlowScenarioFile, Holds) { expect_holds(GetParam()); }

INSTANTIATE_TEST_SUITE_P(, SlowScenarioFile, ::testing::ValuesIn(scenarios_of_cost("slow")),
                         test_name);

}  // namespace
}  // namespace weft::testing
