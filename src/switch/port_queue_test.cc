// One output port: when packets leave, and which packets are marked, trimmed or dropped.
#include "switch/port_queue.h"

#include <gtest/gtest.h>

#include <array>

namespace weft::switching {
namespace {

constexpr std::uint32_t kFull = 4000;
constexpr std::uint32_t kHeader = 100;

Time ns(std::int64_t n) { return Time::from_start(Duration::ns(n)); }

// 80 ps per byte: a full packet takes 320 ns, a header 8 ns.
PortQueue port() {
  PortQueue out;
  out.ps_per_byte_q8 = 80 * 256;
  return out;
}

// The queue holds ten packets. Marking begins at two packets and is certain from four on.
QueueParams params() {
  return {.data_bytes_max = 10 * kFull,
          .control_bytes_max = 10 * kFull,
          .ecn_bytes_min = 2 * kFull,
          .ecn_bytes_max = 4 * kFull,
          .mtu_wire_size = kFull};
}

constexpr Arriving kData{
    .wire_size = kFull, .trimmed_wire_size = kHeader, .trimmable = true, .ecn_capable = true};
constexpr Arriving kControl{.wire_size = kHeader, .control = true};

struct Port {
  PortQueue queue = port();
  QueueParams config = params();
  Prng prng{1};
  Admission admit(Time now, const Arriving& packet) {
    return queue.admit(now, packet, config, config.data_bytes_max, prng);
  }
};

TEST(PortQueue, PacketsLeaveOneAfterAnother) {
  Port port;
  EXPECT_EQ(port.admit(ns(100), kData).leaves_at, ns(420));
  EXPECT_EQ(port.admit(ns(100), kData).leaves_at, ns(740));
  EXPECT_EQ(port.queue.data_backlog(ns(100)), Duration::ns(640));
  EXPECT_EQ(port.queue.data_backlog(ns(740)), Duration());
  EXPECT_EQ(port.admit(ns(1000), kData).leaves_at, ns(1320)) << "an idle port begins at once";
}

TEST(PortQueue, AControlPacketWaitsOnlyForThePacketBeingSent) {
  Port port;
  for (int i = 0; i < 4; ++i) port.admit(ns(0), kData);
  EXPECT_EQ(port.admit(ns(100), kControl).leaves_at, ns(320 + 8));
  EXPECT_EQ(port.admit(ns(100), kControl).leaves_at, ns(320 + 16))
      << "it leaves after the previous control packet";
  // Data admitted after the control packets is delayed by them.
  EXPECT_EQ(port.admit(ns(100), kData).leaves_at, ns(5 * 320 + 16));
}

TEST(PortQueue, AControlPacketOnAnIdlePortLeavesAtOnce) {
  Port port;
  EXPECT_EQ(port.admit(ns(50), kControl).leaves_at, ns(58));
  EXPECT_EQ(port.admit(ns(50), kData).leaves_at, ns(58 + 320));
}

// A busy link sends exactly at its rate, whatever the mix of data and control packets.
TEST(PortQueue, ABusyPortSendsExactlyAtItsRate) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Port port;
    port.config.data_bytes_max = 1u << 30;
    port.config.control_bytes_max = 1u << 30;
    Prng prng(seed);
    std::int64_t bytes = 0;
    for (int i = 0; i < 500; ++i) {
      const bool control = i > 0 && prng.below(4) == 0;
      bytes += control ? kHeader : kFull;
      const Admission admission = port.admit(ns(i), control ? kControl : kData);
      EXPECT_LE(admission.leaves_at.ps(), bytes * 80) << "seed " << seed;
      ASSERT_EQ(port.queue.data_free_at.ps(), bytes * 80) << "seed " << seed << ", packet " << i;
    }
  }
}

TEST(PortQueue, MarkingProbabilityGrowsLinearlyBetweenTheThresholds) {
  Port port;
  std::array<int, 6> marked{};
  constexpr int kRounds = 10'000;
  for (int round = 0; round < kRounds; ++round) {
    const Time now = ns(round * 10'000);  // the queue has become empty
    for (std::size_t depth = 0; depth < 6; ++depth) marked[depth] += port.admit(now, kData).marked;
  }
  EXPECT_EQ(marked[0], 0);
  EXPECT_EQ(marked[1], 0);
  EXPECT_EQ(marked[2], 0) << "exactly at the lower threshold";
  EXPECT_NEAR(marked[3], kRounds / 2, kRounds / 40);
  EXPECT_EQ(marked[4], kRounds);
  EXPECT_EQ(marked[5], kRounds);
}

TEST(PortQueue, PacketsThatAreNotEcnCapableAreNotMarked) {
  Port port;
  Arriving packet = kData;
  packet.ecn_capable = false;
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(port.admit(ns(0), packet).marked);
  Port off;
  off.config.ecn = false;
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(off.admit(ns(0), kData).marked);
}

TEST(PortQueue, TrimmingBeginsAtARandomPlaceInTheLastQuarter) {
  std::array<int, 12> trimmed{};
  Port port;
  for (int round = 0; round < 2'000; ++round) {
    port.queue = switching::port();
    for (std::size_t i = 0; i < 12; ++i) {
      port.queue.data_free_at = ns(static_cast<std::int64_t>(i) * 320);  // i packets wait
      port.queue.control_free_at = Time();
      trimmed[i] += port.admit(ns(0), kData).fate == Fate::kTrimmed;
    }
  }
  for (std::size_t i = 0; i <= 6; ++i) EXPECT_EQ(trimmed[i], 0) << i << " packets wait";
  // The bound is uniform from 7.5 to 10 packets. With 7, 8 or 9 packets waiting, a share of 0.2,
  // 0.6 or 1.0 of all bounds leaves no room for another.
  EXPECT_NEAR(trimmed[7], 400, 80);
  EXPECT_NEAR(trimmed[8], 1'200, 80);
  EXPECT_GE(trimmed[9], 1'990);
  EXPECT_EQ(trimmed[10], 2'000);
}

TEST(PortQueue, ATrimmedPacketLeavesAsASmallControlPacket) {
  Port port;
  port.queue.data_free_at = ns(20 * 320);
  const Admission admission = port.admit(ns(0), kData);
  EXPECT_EQ(admission.fate, Fate::kTrimmed);
  EXPECT_FALSE(admission.marked);
  EXPECT_EQ(admission.leaves_at, ns(8));
}

TEST(PortQueue, PacketsThatCannotBeTrimmedAreDroppedFromAFullQueue) {
  Arriving packet = kData;
  packet.trimmable = false;
  Port port;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(port.admit(ns(0), packet).fate, Fate::kQueued) << i;
  EXPECT_EQ(port.admit(ns(0), packet).fate, Fate::kDropped);
  Port off;
  off.config.trimming = false;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(off.admit(ns(0), kData).fate, Fate::kQueued) << i;
  EXPECT_EQ(off.admit(ns(0), kData).fate, Fate::kDropped);
}

TEST(PortQueue, TheControlQueueIsBounded) {
  Port port;
  port.config.control_bytes_max = 20 * kHeader;
  int queued = 0;
  while (port.admit(ns(0), kControl).fate == Fate::kQueued) ++queued;
  EXPECT_EQ(queued, 21) << "twenty wait, one is being sent";
  port.queue.data_free_at = ns(20 * 320);
  EXPECT_EQ(port.admit(ns(0), kData).fate, Fate::kDropped) << "no room for its header either";
}

TEST(PortQueue, ASharedBufferLowersTheLimit) {
  Port port;
  Arriving packet = kData;
  packet.trimmable = false;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(port.queue.admit(ns(0), packet, port.config, 3 * kFull, port.prng).fate,
              Fate::kQueued);
  }
  EXPECT_EQ(port.queue.admit(ns(0), packet, port.config, 3 * kFull, port.prng).fate,
            Fate::kDropped);
}

}  // namespace
}  // namespace weft::switching
