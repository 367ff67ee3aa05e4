// EV probes are sent by endpoints, not by QPs. So they stay below one per cent of all packets,
// however many hosts send to one host.
#include <gtest/gtest.h>

#include "../support/run_file.h"

namespace weft::testing {
namespace {

TEST(Probes, EvProbesAreBelowOnePercentOfA1023To1Incast) {
  const run::Outcome outcome = run(load("incast-1023"), 1);
  ASSERT_TRUE(outcome.held()) << failures(outcome);
  const std::uint64_t probes = counter(outcome, "transport.ev_probes");
  const std::uint64_t packets = outcome.world.packets_sent;
  EXPECT_LT(probes * 100, packets) << probes << " of " << packets << " packets";
}

}  // namespace
}  // namespace weft::testing
