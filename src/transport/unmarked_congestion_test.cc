#include "transport/unmarked_congestion.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

constexpr std::uint32_t kMtu = 4096;
constexpr Duration kBase = Duration::us(100);
constexpr std::int64_t kWindow = 1 << 20;
constexpr std::int64_t kRound = 64 * kMtu;  // a round has at least 64 packets

class UnmarkedCongestionTest : public testing::Test {
 protected:
  static NsccParams params_of(const PeerRules& peer) {
    NsccConfig config;
    config.rate = Rate::gbps(40);
    config.base_rtt = kBase;
    config.trimming = false;
    return NsccParams::derive(config, kMtu, peer);
  }
  // RTT samples, one every 20 us.
  void sample(Duration rtt, Duration length, std::int64_t window = kWindow) {
    for (const Time end = now + length; now < end; now += Duration::us(20))
      unmarked.on_rtt(now, {.rtt = rtt, .window = window});
  }
  void sample_marked(Duration rtt, int count, int marked_every, std::int64_t window = kWindow) {
    for (int i = 0; i < count; ++i)
      unmarked.on_rtt(now, {.rtt = rtt, .marked = i % marked_every == 0, .window = window});
  }

  const NsccParams params = params_of(kSoftwareRules);
  Time now = Time::from_start(Duration::ms(1));
  UnmarkedCongestion unmarked{params};
};

TEST_F(UnmarkedCongestionTest, NeverAppliesToANic) {
  const NsccParams nic = params_of(kNicRules);
  UnmarkedCongestion none(nic);
  EXPECT_FALSE(none.applies(now));
  EXPECT_FALSE(none.has_standing_queue(now));
  EXPECT_FALSE(none.on_signal(now));
}

TEST_F(UnmarkedCongestionTest, AppliesUntilASwitchSignalsAndAgainAfterHundredRttsOfSilence) {
  EXPECT_TRUE(unmarked.applies(now));
  EXPECT_TRUE(unmarked.on_signal(now)) << "the first signal";
  EXPECT_FALSE(unmarked.applies(now));
  EXPECT_FALSE(unmarked.on_signal(now));
  EXPECT_FALSE(unmarked.applies(now + kBase * 100 - Duration::ns(1)));
  EXPECT_TRUE(unmarked.applies(now + kBase * 100));
  EXPECT_TRUE(unmarked.on_signal(now + kBase * 100)) << "the first after a silence";
}

TEST_F(UnmarkedCongestionTest, BaseRttIsTheSmallestSeenAboveTheConfiguredFloor) {
  EXPECT_EQ(unmarked.rtt_min(), Duration());
  sample(Duration::us(400), Duration::ms(1));
  EXPECT_EQ(unmarked.base_rtt(), Duration::us(400));
  sample(Duration::us(7), Duration::us(20));
  EXPECT_EQ(unmarked.base_rtt(), kBase);
  EXPECT_EQ(unmarked.rtt_min(), Duration::us(7));
}

TEST_F(UnmarkedCongestionTest, QueueStandsWhenAllPacketsOfTwoIntervalsWereLate) {
  sample(kBase, Duration::ms(1));
  sample(kBase + params.standing_queue, Duration::ms(15));
  EXPECT_FALSE(unmarked.has_standing_queue(now)) << "an early packet was in the interval before";
  sample(kBase + params.standing_queue, Duration::ms(15));
  ASSERT_TRUE(unmarked.has_standing_queue(now));
  EXPECT_EQ(unmarked.standing_delay(), params.standing_queue);
  sample(kBase, Duration::us(20));
  EXPECT_FALSE(unmarked.has_standing_queue(now)) << "one early packet shows that it drained";
}

TEST_F(UnmarkedCongestionTest, QueueDoesNotStandBelowItsThreshold) {
  sample(kBase, Duration::ms(1));
  sample(kBase + params.standing_queue - Duration::ns(1), Duration::ms(50));
  EXPECT_FALSE(unmarked.has_standing_queue(now));
}

TEST_F(UnmarkedCongestionTest, NoQueueStandsWhileASwitchSignals) {
  sample(kBase, Duration::ms(1));
  sample(kBase * 10, Duration::ms(50));
  ASSERT_TRUE(unmarked.has_standing_queue(now));
  unmarked.on_signal(now);
  EXPECT_FALSE(unmarked.has_standing_queue(now));
}

TEST_F(UnmarkedCongestionTest, DelayAtTheSmallestWindowIsThePathAfterAPlaneWasLost) {
  const std::int64_t floor = UnmarkedCongestion::kPacketsMin * params.window_min;
  sample(kBase, Duration::ms(1));
  sample(kBase * 10, Duration::ms(200), floor);
  EXPECT_EQ(unmarked.base_rtt(), kBase) << "no plane was lost: another flow's queue";
  unmarked.on_plane_lost();
  sample(kBase * 10, Duration::ms(200), floor + 1);
  EXPECT_EQ(unmarked.base_rtt(), kBase) << "the queue may be our own";
  sample(kBase * 10, Duration::ms(60), floor);
  EXPECT_EQ(unmarked.base_rtt(), kBase * 10);
}

TEST_F(UnmarkedCongestionTest, ManyMarksMakeUpToHalfOfTheBaseRttDoubtful) {
  const Duration rtt = Duration::us(1600);
  sample_marked(rtt, 32, 8);
  EXPECT_EQ(unmarked.base_rtt_less_doubt(), rtt) << "four marks of 32 are few";
  sample_marked(rtt, 32, 4);
  EXPECT_EQ(unmarked.base_rtt_less_doubt(), rtt - rtt / 8);
  sample_marked(rtt, 32 * 20, 4);
  EXPECT_EQ(unmarked.base_rtt_less_doubt(), rtt / 2);
  EXPECT_EQ(unmarked.base_rtt(), rtt) << "timers go by what was seen";
  sample_marked(rtt, 32, 32);
  EXPECT_EQ(unmarked.base_rtt_less_doubt(), rtt / 2 + rtt / 16) << "an eighth of the doubt is gone";
}

TEST_F(UnmarkedCongestionTest, MarksAtASmallWindowMakeNothingDoubtful) {
  sample_marked(Duration::us(1600), 320, 2, 2 * params.window_min);
  EXPECT_EQ(unmarked.base_rtt_less_doubt(), Duration::us(1600));
}

TEST_F(UnmarkedCongestionTest, BaseRttIsNotDoubtedBelowTheConfiguredFloor) {
  sample_marked(kBase, 320, 2);
  EXPECT_EQ(unmarked.base_rtt_less_doubt(), kBase);
}

// A round has as many bytes as the window, or 64 packets.
TEST_F(UnmarkedCongestionTest, LossOfMoreThanOnePacketInSixteenIsMuch) {
  for (const auto& [lost, much] : {std::pair{kRound / 16, false}, {kRound / 16 + kMtu, true}}) {
    UnmarkedCongestion fresh(params);
    fresh.on_lost(lost);
    EXPECT_FALSE(fresh.on_acked(kRound - lost - 1, kMtu)) << "the round is not over";
    EXPECT_EQ(fresh.on_acked(1, kMtu), much);
    EXPECT_EQ(fresh.growth_max(), much ? kMtu : 0);
  }
}

TEST_F(UnmarkedCongestionTest, RoundsWithLittleLossRaiseTheLimitOfGrowthAndThenRemoveIt) {
  unmarked.limit_growth();
  std::int64_t before = kMtu;
  int rounds = 0;
  for (; unmarked.growth_max() > 0 && rounds < 1000; ++rounds) {
    EXPECT_GE(unmarked.growth_max(), before);
    before = unmarked.growth_max();
    EXPECT_FALSE(unmarked.on_acked(kRound, kMtu));
  }
  EXPECT_GT(rounds, 4);
  EXPECT_LT(rounds, 100);
}

TEST_F(UnmarkedCongestionTest, FirstSignalClearsTheRoundAndTheLimitOfGrowth) {
  unmarked.on_lost(kRound);
  unmarked.limit_growth();
  unmarked.on_signal(now);
  EXPECT_EQ(unmarked.growth_max(), 0);
  EXPECT_FALSE(unmarked.on_acked(kRound, kMtu));
}

}  // namespace
}  // namespace weft::transport
