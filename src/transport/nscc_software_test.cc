// NSCC between software ends, where scheduling delays dominate the RTT: docs/decisions/0011.
#include <gtest/gtest.h>

#include "transport/nscc.h"

namespace weft::transport {
namespace {

constexpr std::uint32_t kMtu = 4096;
constexpr std::int64_t kRun = 15 * (kMtu + 92);
constexpr Duration kFloor = Duration::us(100);

class NsccSoftware : public testing::Test {
 protected:
  NsccSoftware() {
    NsccConfig config;
    config.rate = Rate::gbps(40);
    config.base_rtt = kFloor;
    config.trimming = false;
    config.cwnd_bytes_max = 2 << 20;
    config.cwnd_bytes_initial = 1 << 20;
    params = NsccParams::derive(config, kMtu, kSoftwareRules);
    nscc = Nscc(params, now);
  }
  // A burst is sent, and its SACK comes after `rtt`.
  void sack(Duration rtt, bool marked = false) {
    nscc.on_send(kRun);
    now += Duration::us(20);
    nscc.on_sack(
        now, {.newly = kRun, .marked = marked, .rtt_valid = true, .full_size = true, .rtt = rtt});
  }

  // Sends one window each round trip, for `length`.
  void run(Duration rtt, Duration length) {
    for (const Time end = now + length; now < end;) {
      const std::int64_t window = nscc.window();
      for (std::int64_t left = window; left > 0; left -= kRun) {
        const std::int64_t size = std::min(left, kRun);
        nscc.on_send(size);
        now += Duration::ns(rtt.ns() * size / window);
        nscc.on_sack(now, {.newly = size, .rtt_valid = true, .full_size = true, .rtt = rtt});
      }
    }
  }

  NsccParams params;
  Time now = Time::from_start(Duration::ms(1));
  Nscc nscc{params, now};
};

TEST_F(NsccSoftware, RttBelowTheConfiguredBaseDoesNotShrinkTheWindow) {
  for (int i = 0; i < 100; ++i) sack(Duration::us(7));
  EXPECT_EQ(nscc.base_rtt(), kFloor);
  EXPECT_EQ(nscc.window(), 2 << 20);
}

TEST_F(NsccSoftware, BaseRttIsTheSmallestSeenOnALongPath) {
  for (int i = 0; i < 100; ++i) sack(Duration::us(400 + i % 3));
  EXPECT_EQ(nscc.base_rtt(), Duration::us(400));
  EXPECT_GE(nscc.window(), 1 << 20);
}

TEST_F(NsccSoftware, StandingQueueCountsAsAMark) {
  for (int i = 0; i < 100; ++i) sack(Duration::us(50));
  const std::int64_t before = nscc.window();
  for (int i = 0; i < 5000; ++i) sack(Duration::us(900 + i % 50));
  EXPECT_LT(nscc.window(), before / 4);
  EXPECT_GE(nscc.window(), 4 * (kMtu + 92));
  // The queue drains, and the window returns to its maximum.
  for (int i = 0; i < 5000; ++i) sack(Duration::us(60));
  EXPECT_EQ(nscc.window(), 2 << 20);
}

// The shorter of two planes is lost, and the other takes 600 us instead of 100.
TEST_F(NsccSoftware, LongerPathAfterALostPlaneIsNotAQueue) {
  run(kFloor, Duration::ms(10));
  nscc.on_plane_lost();
  now += Duration::s(10);  // nothing was sent meanwhile
  run(Duration::us(600), Duration::ms(500));
  EXPECT_EQ(nscc.base_rtt(), Duration::us(600));
  EXPECT_EQ(nscc.window(), 2 << 20);
}

TEST_F(NsccSoftware, RemainingPathMayBeLongerByLittleOrMuch) {
  for (const Duration rtt : {Duration::us(430), Duration::ms(1), Duration::ms(3)}) {
    SCOPED_TRACE(rtt.to_us());
    nscc = Nscc(params, now);
    run(kFloor, Duration::ms(10));
    nscc.on_plane_lost();
    run(rtt, Duration::s(4));
    EXPECT_EQ(nscc.base_rtt(), rtt);
    EXPECT_EQ(nscc.window(), 2 << 20);
  }
}

// Without a lost plane just before, a delay is a queue, even one that other flows made.
TEST_F(NsccSoftware, QueueThatNeverDrainsIsNotTakenForALongerPath) {
  run(kFloor, Duration::ms(10));
  nscc.on_plane_lost();
  run(kFloor, Duration::s(3));
  run(Duration::us(600), Duration::ms(500));
  EXPECT_EQ(nscc.base_rtt(), kFloor);
  EXPECT_LE(nscc.window(), 8 * params.window_min);
}

// TCP fills a switch's queue: Weft must give way beside it before its own target of 400 us is
// reached, and not below 320 us.
TEST_F(NsccSoftware, StandingQueueCountsFromFourFifthsOfTheTargetDelay) {
  const auto window_with = [this](Duration queue) {
    nscc = Nscc(params, now);
    for (int i = 0; i < 100; ++i) sack(kFloor);
    for (int i = 0; i < 5000; ++i) sack(kFloor + queue + Duration::us(i % 5));
    return nscc.window();
  };
  EXPECT_EQ(window_with(Duration::us(300)), 2 << 20);
  EXPECT_LT(window_with(Duration::us(350)), 3 << 19);
}

TEST_F(NsccSoftware, OldMarkDoesNotHideAStandingQueue) {
  sack(kFloor, true);
  for (int i = 0; i < 5000; ++i) sack(kFloor);
  const std::int64_t before = nscc.window();
  for (int i = 0; i < 5000; ++i) sack(kFloor + Duration::us(350 + i % 5));
  EXPECT_LT(nscc.window(), before * 3 / 4);
}

TEST_F(NsccSoftware, OldMarkDoesNotHideMuchLoss) {
  sack(kFloor, true);
  for (int i = 0; i < 5000; ++i) sack(kFloor);
  const std::int64_t before = nscc.window();
  for (int i = 0; i < 100; ++i) {
    nscc.on_send(kRun / 5);
    nscc.on_loss(now, kRun / 5);
    sack(kFloor);
  }
  EXPECT_LT(nscc.window(), before * 3 / 4);
}

// An old mark does not turn a peer's pause into a queue that quick adapt would cut the window for.
TEST_F(NsccSoftware, OldMarkDoesNotTurnAPauseOfAProcessIntoAQueue) {
  sack(kFloor, true);
  for (int i = 0; i < 5000; ++i) sack(kFloor);
  for (int i = 0; i < 2; ++i) {
    now += Duration::ms(5);
    sack(Duration::ms(5));
  }
  EXPECT_GE(nscc.window(), 1 << 20);
}

// Bytes that arrived while no switch signalled are not counted in the quick adapt period that a new
// signal starts.
TEST_F(NsccSoftware, QuickAdaptStartsCountingAtTheFirstSignalAfterSilence) {
  const auto trim = [this] {
    nscc.on_send(kMtu);
    nscc.on_trim(now, {.size = kMtu, .sent_at = now});
  };
  trim();
  for (int i = 0; i < 1000; ++i) {  // few packets over a long time
    now += Duration::ms(1);
    sack(kFloor);
  }
  const std::int64_t before = nscc.window();
  trim();
  EXPECT_GE(nscc.window(), before - kMtu) << "at the first it begins to count";
  for (int i = 0; i < 8; ++i) {
    now += Duration::us(100);
    trim();
  }
  EXPECT_LT(nscc.window(), before / 4);
}

TEST_F(NsccSoftware, PauseOfAProcessIsNotAQueue) {
  // Every fourth packet waits for milliseconds until the peer's process gets a core.
  for (int i = 0; i < 4000; ++i) sack(i % 4 == 0 ? Duration::ms(5) : Duration::us(60));
  EXPECT_EQ(nscc.window(), 2 << 20);
}

TEST_F(NsccSoftware, MarksOfASwitchCountInsteadOfTheDelay) {
  for (int i = 0; i < 20; ++i) sack(Duration::us(50));
  sack(Duration::us(50), true);
  const std::int64_t before = nscc.window();
  for (int i = 0; i < 200; ++i) sack(Duration::us(900));  // unmarked: the queue is draining
  EXPECT_GE(nscc.window(), before);
}

// The QP started when a queue stood that never emptied: it takes the queue for the length of its
// path (docs/decisions/0034).
TEST_F(NsccSoftware, ManyMarksWithoutDelayShrinkTheWindow) {
  const auto window_after = [this](int marked_every) {
    nscc = Nscc(params, now);
    sack(Duration::us(1500));
    for (int i = 0; i < 4000; ++i)
      sack(Duration::us(1500 + i % 64), marked_every > 0 && i % marked_every == 0);
    return nscc.window();
  };
  EXPECT_GE(window_after(0), 1 << 20);
  EXPECT_GE(window_after(64), 1 << 20) << "a mark now and then is a path's, not a queue's";
  EXPECT_LT(window_after(2), 3 << 18);
  EXPECT_EQ(nscc.base_rtt(), Duration::us(1500)) << "what timers go by";
  // The other flows end and marks stop: the base RTT is no longer doubted, and the first marks
  // after that count as marks of one path.
  for (int i = 0; i < 8000; ++i) sack(Duration::us(1500));
  const std::int64_t before = nscc.window();
  EXPECT_GE(before, 1 << 20);
  for (int i = 0; i < 31; ++i) sack(Duration::us(1500), true);
  EXPECT_GE(nscc.window(), before);
}

TEST_F(NsccSoftware, QuickAdaptWaitsForATrim) {
  for (int i = 0; i < 20; ++i) sack(Duration::us(50));
  now += Duration::ms(5);
  sack(Duration::ms(5));
  sack(Duration::ms(5));
  EXPECT_GE(nscc.window(), 1 << 20);
}

TEST_F(NsccSoftware, ReceiveBudgetOfThePeerBoundsInflight) {
  nscc.set_limit(3 * kRun);
  nscc.on_send(2 * kRun);
  EXPECT_TRUE(nscc.allows(kRun));
  EXPECT_FALSE(nscc.allows(kRun + 1));
}

}  // namespace
}  // namespace weft::transport
