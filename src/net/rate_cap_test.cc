#include "net/rate_cap.h"

#include <gtest/gtest.h>

namespace weft::net {
namespace {

constexpr std::uint32_t kMtu = 4096;

// Polls every `step`, and each time sends `over` packets more than allowed. Returns the bytes sent
// in one second, not counting the initial bucket.
std::uint64_t bytes_of_a_second(Rate rate, Duration step, std::uint32_t over) {
  RateCap cap(rate, kMtu);
  const Time start = Time::from_start(Duration::s(5));
  const Time warm = start + Duration::ms(200), end = warm + Duration::s(1);
  std::uint64_t bytes = 0;
  for (Time now = start; now < end; now += step) {
    const std::uint32_t packets = cap.packets(now);
    if (packets == 0) continue;
    const std::uint64_t sent = std::uint64_t{packets + over} * kMtu;
    cap.spend(sent);
    if (now >= warm) bytes += sent;
  }
  return bytes;
}

TEST(RateCap, TheAverageRateEqualsTheCap) {
  for (const std::uint64_t mbps : {10ull, 100ull, 2'000ull, 40'000ull}) {
    const auto rate = Rate::bps(mbps * 1'000'000);
    for (const std::uint32_t over : {0u, 44u}) {
      const std::uint64_t expected = rate.bytes_in(Duration::s(1));
      const std::uint64_t bytes = bytes_of_a_second(rate, Duration::us(5), over);
      // The average may be off by one bucket and one debt at each end of the second.
      const std::uint64_t slack = rate.bytes_in(Duration::ms(4)) + 2 * (over + 16) * kMtu;
      EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(expected),
                  static_cast<double>(slack) + 0.01 * static_cast<double>(expected))
          << mbps << " Mb/s, " << over << " packets over";
    }
  }
}

TEST(RateCap, FrequentPollsLoseNoFractionsOfAByte) {
  // A byte takes 8 us at 1 Mb/s; the cap is polled every 100 ns.
  RateCap cap(Rate::bps(1'000'000), kMtu);
  Time now = Time::from_start(Duration::s(1));
  EXPECT_EQ(cap.packets(now), 2u);
  cap.spend(2 * kMtu);
  std::uint32_t opened = 0;
  for (int i = 0; i < 10 * 100'000; ++i) {  // 100 ms: 12500 bytes, three packets
    now += Duration::ns(100);
    if (cap.packets(now) == 0) continue;
    ++opened;
    cap.spend(kMtu);
  }
  EXPECT_EQ(opened, 3u);
}

TEST(RateCap, PacketsMayBeSentAtTheTimeThatOpensAtGives) {
  RateCap cap(Rate::gbps(2), kMtu);
  const Time now = Time::from_start(Duration::s(1));
  ASSERT_GT(cap.packets(now), 0u);
  EXPECT_LE(cap.opens_at(), now);
  cap.spend(600'000);
  EXPECT_EQ(cap.packets(now), 0u);
  const Time opens = cap.opens_at();
  EXPECT_GT(opens, now);
  EXPECT_EQ(cap.packets(opens - Duration::us(1)), 0u);
  EXPECT_GT(cap.packets(opens), 0u);
}

TEST(RateCap, APauseFillsAtMostOneBucket) {
  RateCap cap(Rate::gbps(2), kMtu);
  const std::uint32_t full = cap.packets(Time::from_start(Duration::s(1)));
  EXPECT_EQ(cap.packets(Time::from_start(Duration::s(100'000))), full);
  EXPECT_LE(full * kMtu, Rate::gbps(2).bytes_in(Duration::ms(2)));
}

}  // namespace
}  // namespace weft::net
