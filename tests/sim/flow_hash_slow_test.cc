// What happens without spraying, at full size: permutation-1024 with one path for each flow. A flow
// that shares no link is fastest. The median flow gets half of that rate, and the slowest flows get
// a third or less.
#include <gtest/gtest.h>

#include "../support/run_file.h"

namespace weft::testing {
namespace {

TEST(FlowHash, HalfOf1024FlowsGetHalfOfTheFastestRateOrLess) {
  scenario::Scenario scenario = load("permutation-1024");
  scenario.transport.policy = transport::Policy::kFlowHash;
  scenario.expect.slowest_over_ideal_max.reset();
  const run::Outcome outcome = run(scenario, 1);
  EXPECT_TRUE(outcome.held()) << failures(outcome);
  const auto& fct = outcome.results.fct_us;
  EXPECT_NEAR(fct.min / fct.p50, 1.0 / 2, 0.03);
  EXPECT_LT(fct.min / fct.p99, 1.0 / 3);
}

}  // namespace
}  // namespace weft::testing
