#include "transport/refused_peers.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

using Step = RefusedPeers::Step;

Time at(std::int64_t ms) { return Time::from_start(Duration::ms(ms)); }

// One QP, which sends its probes whenever it is told to.
struct Bench {
  Step step(Time now) {
    refused.begin_round();
    const Step next = refused.next_step(now, qp, seen);
    if (next == Step::kAsk) {
      ++asked;
      refused.on_asked(now, qp, true);
    }
    return next;
  }

  RefusedPeers refused;
  RefusedPeers::OfQp qp;
  RefusedPeers::Seen seen{.may_send = true, .last_heard = at(1)};
  int asked = 0;
};

TEST(RefusedPeers, SilentPeerIsProbedThreeTimesAndThenGone) {
  Bench bench;
  EXPECT_EQ(bench.refused.next_at(), kNever);
  bench.refused.on_refusal(at(1000), bench.qp, bench.seen);
  for (const std::int64_t ms : {1000, 1250, 1500}) {
    ASSERT_EQ(bench.refused.next_at(), at(ms));
    EXPECT_EQ(bench.step(at(ms)), Step::kAsk);
    EXPECT_EQ(bench.step(at(ms)), Step::kWait);
  }
  EXPECT_EQ(bench.step(at(1749)), Step::kWait);
  EXPECT_EQ(bench.step(at(1750)), Step::kFail);
  EXPECT_EQ(bench.asked, 3);
  EXPECT_EQ(bench.step(at(9000)), Step::kWait);
  EXPECT_EQ(bench.refused.next_at(), kNever);
}

TEST(RefusedPeers, PacketHeardAfterTheRefusalSavesThePeer) {
  Bench bench;
  bench.refused.on_refusal(at(1000), bench.qp, bench.seen);
  EXPECT_EQ(bench.step(at(1000)), Step::kAsk);
  bench.seen.last_heard = at(1001);
  EXPECT_EQ(bench.step(at(1250)), Step::kWait);
  EXPECT_FALSE(bench.qp.is_in_question);
  EXPECT_EQ(bench.refused.next_at(), kNever);
}

TEST(RefusedPeers, PacketHeardBeforeTheRefusalDoesNotCount) {
  Bench bench;
  bench.seen.last_heard = at(1000);
  bench.refused.on_refusal(at(1000), bench.qp, bench.seen);
  EXPECT_EQ(bench.step(at(1000)), Step::kAsk);
}

TEST(RefusedPeers, FurtherRefusalsOfASilentPeerChangeNothing) {
  Bench bench;
  bench.refused.on_refusal(at(1000), bench.qp, bench.seen);
  EXPECT_EQ(bench.step(at(1000)), Step::kAsk);
  bench.refused.on_refusal(at(1100), bench.qp, bench.seen);
  EXPECT_EQ(bench.qp.since, at(1000));
  EXPECT_EQ(bench.qp.times_asked, 1);
}

TEST(RefusedPeers, RefusalAfterAnAnswerRestartsTwentyMillisecondsAfterTheLastProbe) {
  Bench bench;
  bench.refused.on_refusal(at(1000), bench.qp, bench.seen);
  EXPECT_EQ(bench.step(at(1000)), Step::kAsk);
  bench.seen.last_heard = at(1005);
  bench.refused.on_refusal(at(1006), bench.qp, bench.seen);
  EXPECT_EQ(bench.qp.times_asked, 0);
  EXPECT_EQ(bench.refused.next_at(), at(1020));
}

TEST(RefusedPeers, QpThatMayNotSendIsNotInQuestion) {
  Bench bench;
  bench.seen.may_send = false;
  bench.refused.on_refusal(at(1000), bench.qp, bench.seen);
  EXPECT_FALSE(bench.qp.is_in_question);
  bench.seen.may_send = true;
  bench.refused.on_refusal(at(1000), bench.qp, bench.seen);
  bench.seen.may_send = false;  // it failed for another reason
  EXPECT_EQ(bench.step(at(1000)), Step::kWait);
  EXPECT_FALSE(bench.qp.is_in_question);
}

TEST(RefusedPeers, ProbeThatFoundTheQueueFullDoesNotCount) {
  Bench bench;
  bench.refused.on_refusal(at(1000), bench.qp, bench.seen);
  bench.refused.begin_round();
  EXPECT_EQ(bench.refused.next_step(at(1000), bench.qp, bench.seen), Step::kAsk);
  bench.refused.on_asked(at(1000), bench.qp, false);
  EXPECT_EQ(bench.qp.times_asked, 0);
  EXPECT_EQ(bench.refused.next_at(), at(1250));
}

}  // namespace
}  // namespace weft::transport
