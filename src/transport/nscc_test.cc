#include "transport/nscc.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

constexpr std::uint32_t kMtu = 4096;
constexpr std::int64_t kPacket = kMtu + 92;
constexpr Duration kRtt = Duration::us(12);

Time at(Duration d) { return Time::from_start(d); }

class NsccTest : public testing::Test {
 protected:
  explicit NsccTest(bool trimming = true, std::uint32_t initial = 100'000) {
    NsccConfig config;
    config.rate = Rate::gbps(100);
    config.base_rtt = kRtt;
    config.trimming = trimming;
    config.cwnd_bytes_initial = initial;
    params = NsccParams::derive(config, kMtu, kNicRules);
    nscc = Nscc(params, now);
  }
  // Sends one packet, whose SACK shows that delay above the base RTT.
  void sack(Duration delay, bool marked = false, Duration step = Duration::us(1)) {
    nscc.on_send(kPacket);
    now += step;
    nscc.on_sack(now, {.newly = kPacket, .marked = marked, .rtt_valid = true, .rtt = kRtt + delay});
  }

  NsccParams params;
  Time now = at(Duration::ms(1));
  Nscc nscc{params, now};
};
class NsccWithoutTrimming : public NsccTest {
 protected:
  NsccWithoutTrimming() : NsccTest(false) {}
};

TEST_F(NsccTest, WindowAllowsWhatFitsAndAlwaysOnePacket) {
  EXPECT_TRUE(nscc.allows(100'000));
  EXPECT_TRUE(nscc.allows(1'000'000));  // nothing is in flight
  nscc.on_send(96'000);
  EXPECT_TRUE(nscc.allows(4'000));
  EXPECT_FALSE(nscc.allows(4'001));
}

TEST_F(NsccTest, WindowGrowsInProportionWhenUnmarkedAndEarly) {
  // At half the target delay the window grows by half the gain per round trip.
  const std::int64_t before = nscc.window();
  for (int i = 0; i < 24; ++i) sack(params.target / 2);
  const std::int64_t grown = nscc.window() - before;
  EXPECT_NEAR(static_cast<double>(grown), static_cast<double>(params.gain) / 2 + 614 * 2, 1500);
}

TEST_F(NsccTest, WindowGrowsAdditivelyWhenUnmarkedAndLate) {
  const std::int64_t before = nscc.window();
  for (int i = 0; i < 24; ++i) sack(params.target * 2);
  const std::int64_t grown = nscc.window() - before;
  EXPECT_NEAR(static_cast<double>(grown), static_cast<double>(params.fair_increase), 3500);
}

TEST_F(NsccTest, WindowStaysWhenMarkedAndEarly) {
  const std::int64_t before = nscc.window();
  for (int i = 0; i < 10; ++i) sack(params.target / 2, true);
  EXPECT_EQ(nscc.window(), before);
}

TEST_F(NsccTest, WindowShrinksOncePerRttByNoMoreThanHalfWhenMarkedAndLate) {
  for (int i = 0; i < 200; ++i)
    sack(params.target / 2, true, Duration::ns(10));  // sets the average delay
  const std::int64_t before = nscc.window();
  std::int64_t last = before;
  int cuts = 0;
  const Time start = now;
  for (int i = 0; i < 400; ++i) {
    sack(params.target * 10, true, Duration::ns(300));
    EXPECT_GE(nscc.window(), std::max(last / 2 - 1, kPacket));
    cuts += nscc.window() < last;
    last = std::min(last, nscc.window());
  }
  EXPECT_LT(nscc.window(), before / 4);
  EXPECT_LE(cuts, (now - start).us() / kRtt.us() + 1);
  EXPECT_GE(nscc.window(), kPacket);
}

TEST_F(NsccTest, WindowGrowsFasterAfterAWindowWithoutDelay) {
  const std::int64_t before = nscc.window();
  for (int i = 0; i < 60; ++i) sack(Duration());
  const std::int64_t grown = nscc.window() - before;
  EXPECT_GT(grown, params.gain * 3);  // faster than the proportional rule
  // A delayed packet ends the fast increase.
  const std::int64_t fast = nscc.window();
  sack(params.target / 2);
  EXPECT_LT(nscc.window() - fast, 700);
}

TEST_F(NsccTest, WindowNeverExceedsItsMaximum) {
  for (int i = 0; i < 2000; ++i) sack(Duration());
  EXPECT_EQ(nscc.window(), params.window_max);
}

TEST_F(NsccTest, SackWithoutAnRttChangesOnlyInflight) {
  nscc.on_send(kPacket);
  nscc.on_sack(now, {.newly = kPacket, .rtt = {}});
  EXPECT_EQ(nscc.inflight(), 0);
  EXPECT_EQ(nscc.window(), 100'000);
}

TEST_F(NsccTest, ShorterRttOfAFullPacketLowersTheBaseRtt) {
  nscc.on_sack(now, {.newly = 0, .rtt_valid = true, .full_size = false, .rtt = kRtt / 2});
  EXPECT_EQ(nscc.base_rtt(), kRtt);
  nscc.on_sack(now, {.newly = 0, .rtt_valid = true, .full_size = true, .rtt = kRtt / 2});
  EXPECT_EQ(nscc.base_rtt(), kRtt / 2);
  for (int i = 0; i < 2000; ++i) {
    nscc.on_send(kPacket);
    now += Duration::us(1);
    nscc.on_sack(now, {.newly = kPacket, .rtt_valid = true, .full_size = true, .rtt = kRtt / 2});
  }
  EXPECT_EQ(nscc.window(), params.window_max / 2);  // 1.5 times the new BDP
}

TEST_F(NsccTest, PenaltyHalvesTheWindowInAnRttAndEndsWithRestore) {
  nscc.on_send(96'000);
  const std::int64_t before = nscc.window();
  for (std::int64_t got = 0; got < 96'000; got += 3'000) {
    nscc.on_send(3'000);
    now += Duration::us(1);
    nscc.on_sack(now, {.newly = 3'000, .rtt_valid = true, .rtt = kRtt, .penalty = 64});
  }
  EXPECT_NEAR(static_cast<double>(nscc.window()), static_cast<double>(before) / 2, 8'000);
  const std::int64_t limited = nscc.window();
  // The window does not grow during the penalty, nor after it until the receiver says restore.
  for (int i = 0; i < 50; ++i) sack(Duration());
  EXPECT_LE(nscc.window(), limited);
  nscc.on_sack(now, {.newly = 0, .rtt = {}, .restore = true});
  EXPECT_EQ(nscc.window(), before);
  for (int i = 0; i < 50; ++i) sack(Duration());
  EXPECT_GT(nscc.window(), before);
}

TEST_F(NsccTest, FullPenaltyLeavesOnePacket) {
  nscc.on_send(96'000);
  for (int i = 0; i < 200; ++i) {
    nscc.on_send(kPacket);
    nscc.on_sack(now, {.newly = kPacket, .rtt = {}, .penalty = 127});
  }
  EXPECT_EQ(nscc.window(), kPacket);
}

TEST_F(NsccTest, TrimReducesTheWindowByThePacketsSize) {
  nscc.on_send(99'000);
  const std::int64_t before = nscc.window();
  ASSERT_GT(before, 99'000);
  nscc.on_trim(now, {.size = kPacket, .sent_at = now});
  EXPECT_EQ(nscc.window(), before - kPacket);
  EXPECT_EQ(nscc.inflight(), 99'000 - kPacket);
}

TEST_F(NsccTest, TrimAtTheLastHopSetsTheWindowToWhatWasInFlightLessThePacket) {
  nscc.on_send(99'000);
  ASSERT_GT(nscc.window(), 99'000);
  nscc.on_trim(now, {.size = kPacket, .sent_at = now, .last_hop = true});
  EXPECT_EQ(nscc.window(), 99'000 - kPacket);
  EXPECT_EQ(nscc.inflight(), 99'000 - kPacket);
}

TEST_F(NsccTest, QuickAdaptSetsTheWindowOncePerPeriodToTheBytesThatArrived) {
  nscc.on_send(90'000);
  nscc.on_trim(now, {.size = kPacket, .sent_at = now});  // the first period begins
  for (int i = 0; i < 3; ++i) {
    nscc.on_send(kPacket);
    nscc.on_sack(now, {.newly = kPacket, .rtt = {}});
  }
  const std::int64_t before = nscc.window();
  now += kRtt;
  nscc.on_trim(now, {.size = kPacket, .sent_at = now});  // base RTT + target has not passed
  EXPECT_EQ(nscc.window(), before - kPacket);
  now += params.target;
  nscc.on_trim(now, {.size = kPacket, .sent_at = now});
  EXPECT_EQ(nscc.window(), 3 * kPacket);
  // Marks of packets that were already in flight are then ignored, and there is no second cut in
  // this period.
  const std::int64_t adapted = nscc.window();
  now += Duration::us(1);
  nscc.on_sack(now,
               {.newly = 1000, .marked = true, .rtt_valid = true, .rtt = kRtt + params.target * 4});
  EXPECT_EQ(nscc.window(), adapted);
  nscc.on_trim(now, {.size = 1, .sent_at = now});
  EXPECT_GE(nscc.window(), adapted - 1);
}

TEST_F(NsccTest, QuickAdaptActsOnlyBelowItsGate) {
  nscc.on_send(90'000);
  nscc.on_trim(now, {.size = kPacket, .sent_at = now});
  // More than an eighth of the maximum arrived: the window is not far off, and quick adapt does not
  // act.
  nscc.on_sack(now, {.newly = params.window_max / 8 + 1, .rtt = {}});
  now += kRtt + params.target;
  const std::int64_t before = nscc.window();
  nscc.on_trim(now, {.size = 100, .sent_at = now});
  EXPECT_GE(nscc.window(), std::min(before, nscc.inflight() + 100) - 100);
}

TEST_F(NsccTest, TrimsAtTheMinimumWindowStartPacing) {
  Duration gap_max;
  Time sent;
  for (int i = 0; i < 30; ++i) {
    nscc.on_send(kPacket);
    sent = now;
    now += kRtt;
    nscc.on_trim(now, {.size = kPacket, .sent_at = sent, .draw = 0x8000});
    gap_max = std::max(gap_max, nscc.paced_until() - now);
    if (nscc.paced_until() > now) now = nscc.paced_until();
  }
  EXPECT_EQ(nscc.window(), kPacket);
  EXPECT_NEAR(gap_max.to_us(), (kRtt * 8).to_us(), 0.1);  // the mean gap is at most eight RTTs
  // Acknowledged packets shorten the gap again, until the window replaces pacing.
  int packets = 0;
  for (; nscc.window() == kPacket && packets < 1000; ++packets) {
    now = std::max(now, nscc.paced_until()) + kRtt;
    nscc.on_send(kPacket);
    nscc.on_sack(now, {.newly = kPacket, .rtt_valid = true, .full_size = true, .rtt = kRtt});
  }
  EXPECT_GT(packets, 2);
  EXPECT_LT(packets, 50);
}

TEST_F(NsccTest, TrimsOfPacketsSentBeforeDoNotWidenTheGap) {
  const Time sent = now;
  nscc.on_send(100'000);
  now += kRtt;
  while (nscc.window() > kPacket)
    nscc.on_trim(now, {.size = kPacket, .sent_at = sent, .draw = 0x8000});
  nscc.on_trim(now, {.size = kPacket, .sent_at = sent, .draw = 0x8000});
  const Duration gap = nscc.paced_until() - now;
  for (int i = 0; i < 5; ++i) nscc.on_trim(now, {.size = kPacket, .sent_at = sent, .draw = 0x8000});
  EXPECT_EQ(nscc.paced_until() - now, gap);
}

TEST_F(NsccTest, LossIsNotCongestionWhereSwitchesTrim) {
  nscc.on_send(50'000);
  nscc.on_loss(now, kPacket);
  EXPECT_EQ(nscc.window(), 100'000);
  EXPECT_EQ(nscc.inflight(), 50'000 - kPacket);
}

TEST_F(NsccWithoutTrimming, LossReducesTheWindowByThePacketsSize) {
  nscc.on_send(50'000);
  nscc.on_loss(now, kPacket);
  EXPECT_EQ(nscc.window(), 100'000 - kPacket);
  for (int i = 0; i < 100; ++i) nscc.on_loss(now, kPacket);
  EXPECT_EQ(nscc.window(), kPacket);
}

TEST_F(NsccWithoutTrimming, LongDelayTriggersQuickAdapt) {
  sack(Duration());  // the first period begins
  now += kRtt + params.target;
  sack(params.target * 5);
  EXPECT_LT(nscc.window(), 3 * kPacket);
}

// A peer that reports more or fewer bytes than it received changes inflight(), and never
// accounted().
TEST_F(NsccTest, AccountedIsWhatWasSentAndNotLostWhateverThePeerReports) {
  for (int i = 0; i < 4; ++i) nscc.on_send(1000);
  nscc.on_loss(now, 1000);
  nscc.on_sack(now, {.newly = 1'000'000, .rtt = {}});
  EXPECT_EQ(nscc.accounted(), 3000);
  EXPECT_EQ(nscc.settle(), 3000 - 1'000'000);
  EXPECT_EQ(nscc.accounted(), 3000);
}

TEST_F(NsccTest, InflightReturnsToZeroAndSettles) {
  nscc.on_send(1000);
  nscc.on_send(1000);
  nscc.on_loss(now, 1000);
  nscc.on_lost_packet_arrived(1000);
  nscc.on_loss_without_congestion(1000);
  EXPECT_EQ(nscc.inflight(), 1000);
  nscc.on_sack(now, {.newly = 1024, .rtt = {}});
  EXPECT_EQ(nscc.settle(), -24);
  EXPECT_EQ(nscc.inflight(), 0);
}

}  // namespace
}  // namespace weft::transport
