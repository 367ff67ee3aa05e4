// What happens without spraying: with one path for each flow, some flows of a permutation share
// links. They get a half or a third of the rate of a flow that shares no link. If packets are
// sprayed over all paths, no flow becomes so slow. This test runs permutation-64, which is cheap;
// flow_hash_slow_test.cc runs permutation-1024.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "../support/run_file.h"

namespace weft::testing {
namespace {

// For each flow: its rate divided by the rate of the fastest flow, which shares no link. Each flow
// is one message.
std::vector<double> rates_over_fastest(transport::Policy policy) {
  scenario::Scenario scenario = load("permutation-64");
  scenario.transport.policy = policy;
  scenario.expect.slowest_over_ideal_max.reset();
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, Time> posted;
  std::vector<double> times;
  run::RunOptions options;
  options.on_trace = [&](std::span<const TraceRecord> records) {
    for (const TraceRecord& r : records) {
      if (r.kind == TraceKind::kPost) posted[{r.host, r.qpn, r.id}] = r.at;
      if (r.kind != TraceKind::kComplete || (r.flags & 1) != 0) continue;
      times.push_back((r.at - posted.at({r.host, r.qpn, r.id})).to_us());
    }
  };
  const run::Outcome outcome = run(scenario, options);
  EXPECT_TRUE(outcome.held()) << failures(outcome);
  const double fastest = *std::min_element(times.begin(), times.end());
  for (double& t : times) t = fastest / t;
  return times;
}

std::ptrdiff_t count_near(const std::vector<double>& rates, double share) {
  return std::count_if(rates.begin(), rates.end(),
                       [=](double r) { return std::abs(r / share - 1) < 0.06; });
}

TEST(FlowHash, SomeFlowsGetAHalfOrAThirdOfTheFastestRate) {
  const auto rates = rates_over_fastest(transport::Policy::kFlowHash);
  ASSERT_EQ(rates.size(), 64u);
  EXPECT_GE(count_near(rates, 1.0), 4);
  EXPECT_GE(count_near(rates, 1.0 / 2), 4);
  EXPECT_GE(count_near(rates, 1.0 / 3), 4);
}

TEST(FlowHash, SprayedFlowsAllGetThreeQuartersOfTheFastestRate) {
  const auto rates = rates_over_fastest(transport::Policy::kMrc);
  ASSERT_EQ(rates.size(), 64u);
  EXPECT_GT(*std::min_element(rates.begin(), rates.end()), 0.75);
}

}  // namespace
}  // namespace weft::testing
