// The counter-example: with one path a flow, flows of a permutation share links and get a half or a
// third of what one gets that shares with nobody; sprayed over all paths, none does.
// (permutation-1024 is too dear here; the small form shows the same.)
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "../support/run_file.h"

namespace weft::testing {
namespace {

// Rates of all flows over the fastest one's, which had its path for itself. One message a flow.
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

TEST(FlowHash, SomeFlowsGetAHalfOrAThird) {
  const auto rates = rates_over_fastest(transport::Policy::kFlowHash);
  ASSERT_EQ(rates.size(), 64u);
  EXPECT_GE(count_near(rates, 1.0), 4);
  EXPECT_GE(count_near(rates, 1.0 / 2), 4);
  EXPECT_GE(count_near(rates, 1.0 / 3), 4);
}

TEST(FlowHash, SprayedNoneDoes) {
  const auto rates = rates_over_fastest(transport::Policy::kMrc);
  ASSERT_EQ(rates.size(), 64u);
  EXPECT_GT(*std::min_element(rates.begin(), rates.end()), 0.75);
}

}  // namespace
}  // namespace weft::testing
