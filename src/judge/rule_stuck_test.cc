#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

TraceBuilder half_way(bool signalled = true) {
  TraceBuilder run;
  run.post({.id = 1, .length = 4096, .signalled = signalled});
  run.pass(0);
  run.pass(1);
  return run;
}

TEST(RuleStuck, APostThatNeverCompletesAfterHealingIsReported) {
  TraceBuilder run = half_way();
  run.end();
  EXPECT_EQ(run.broken(), "stuck");
  EXPECT_EQ(run.judge()[0].text,
            "1 posts never completed; the oldest, 1, has 4 packets, 2 of the QP's 4 were sent,"
            " 2 received and 0 acknowledged");

  TraceBuilder unsignalled = half_way(false);
  unsignalled.end();
  EXPECT_EQ(unsignalled.broken(), "stuck");
}

TEST(RuleStuck, AnUnsignalledPostIsCompleteWhenAcknowledged) {
  TraceBuilder run;
  run.transfer({.id = 1, .signalled = false});
  run.end();
  EXPECT_EQ(run.broken(), "");
}

TEST(RuleStuck, NoComplaintWithoutHealingOrWithADeadEnd) {
  TraceBuilder not_healed = half_way();
  not_healed.add(TraceKind::kEnd, 0);
  EXPECT_EQ(not_healed.broken(), "");

  for (const std::uint32_t host : {TraceBuilder::kRequestor, TraceBuilder::kResponder}) {
    TraceBuilder crashed = half_way();
    crashed.add(TraceKind::kHostDown, host);
    crashed.end();
    EXPECT_EQ(crashed.broken(), "");

    TraceBuilder destroyed = half_way();
    destroyed.add(TraceKind::kQpGone, host);
    destroyed.end();
    EXPECT_EQ(destroyed.broken(), "");
  }
}

}  // namespace
}  // namespace weft::judge
