// How soon an EV with 20 % loss is no longer used. (The scenario ev-loss-20pct only checks that
// this happens, and the goodput afterwards.)
#include <gtest/gtest.h>

#include <optional>

#include "../support/run_file.h"
#include "fabric/topology.h"
#include "scenario/settings.h"
#include "transport/path_set.h"

namespace weft::testing {
namespace {

TEST(EvLoss, EvWithTwentyPercentLossIsNoLongerUsedAfterFiveRtts) {
  const scenario::Scenario scenario = load("ev-loss-20pct");
  ASSERT_EQ(scenario.faults.size(), 1u);
  const Time began = Time::from_start(scenario.faults[0].from);
  const auto topology = fabric::Topology::make(scenario.topology).value();
  const Duration rtt = scenario::base_rtt(scenario, topology);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::optional<Time> out;
    run::RunOptions options;
    options.seed = seed;
    options.on_trace = [&](std::span<const TraceRecord> records) {
      for (const TraceRecord& r : records) {
        const bool bad = r.kind == TraceKind::kEv &&
                         r.a == static_cast<std::uint64_t>(transport::EvState::kAssumedBad);
        if (bad && r.at >= began && !out) out = r.at;
      }
    };
    const run::Outcome outcome = run(scenario, options);
    EXPECT_TRUE(outcome.held()) << failures(outcome);
    ASSERT_TRUE(out) << "seed " << seed;
    EXPECT_LE((*out - began).to_us(), (rtt * 5).to_us()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft::testing
