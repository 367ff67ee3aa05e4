#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

TraceBuilder half_delivered(bool signalled = true) {
  TraceBuilder run;
  run.post({.id = 1, .length = 4096, .signalled = signalled});
  run.send_and_arrive(0);
  run.send_and_arrive(1);
  return run;
}

TEST(RuleStuck, APostThatNeverCompletesAfterHealingIsReported) {
  TraceBuilder run = half_delivered();
  run.end();
  EXPECT_EQ(run.broken(), "stuck");
  EXPECT_EQ(run.judge()[0].text,
            "1 posts never completed; the oldest, 1, has 4 packets, 2 of the QP's 4 were sent,"
            " 2 received and 0 acknowledged");

  TraceBuilder unsignalled = half_delivered(false);
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
  TraceBuilder not_healed = half_delivered();
  not_healed.add(TraceKind::kEnd, 0);
  EXPECT_EQ(not_healed.broken(), "");

  for (const std::uint32_t host : {TraceBuilder::kRequestor, TraceBuilder::kResponder}) {
    TraceBuilder crashed = half_delivered();
    crashed.add(TraceKind::kHostDown, host);
    crashed.end();
    EXPECT_EQ(crashed.broken(), "");

    TraceBuilder destroyed = half_delivered();
    destroyed.add(TraceKind::kQpGone, host);
    destroyed.end();
    EXPECT_EQ(destroyed.broken(), "");
  }
}

}  // namespace
}  // namespace weft::judge
