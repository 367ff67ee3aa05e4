#include "base/rate.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Rate, TimeForKnownSizesIsExact) {
  EXPECT_EQ(Rate::gbps(800).time_for(64), Duration::ps(640));
  EXPECT_EQ(Rate::gbps(100).time_for(4096), Duration::ps(327'680));
  EXPECT_EQ(Rate::gbps(400).time_for(1), Duration::ps(20));
  EXPECT_EQ(Rate::gbps(100).time_for(0), Duration());
  EXPECT_EQ(Rate::bps(1'000'000).time_for(125'000), Duration::s(1));
}

TEST(Rate, RoundingErrorOfALongTransferIsBelowOneInAMillion) {
  for (std::uint64_t gbps : {1u, 3u, 10u, 25u, 40u, 100u, 200u, 400u, 800u}) {
    const Rate rate = Rate::gbps(gbps);
    const std::uint64_t bytes = 1'000'000'000'000;
    const double exact = static_cast<double>(bytes) * 8000.0 / static_cast<double>(gbps);
    EXPECT_NEAR(static_cast<double>(rate.time_for(bytes).ps()) / exact, 1.0, 1e-6) << gbps;
  }
}

TEST(Rate, BytesInReturnsTheWholeBytesThatFitIntoADuration) {
  EXPECT_EQ(Rate::gbps(100).bytes_in(Duration::us(12)), 150'000u);
  EXPECT_EQ(Rate::gbps(800).bytes_in(Duration::us(12)), 1'200'000u);
  EXPECT_EQ(Rate::gbps(100).bytes_in(Duration()), 0u);
  EXPECT_EQ(Rate::gbps(100).bytes_in(Duration::ps(79)), 0u);
  EXPECT_EQ(Rate::gbps(100).bytes_in(Duration::ps(80)), 1u);
  EXPECT_EQ(Rate::gbps(800).bytes_in(Duration::s(3600)), 360'000'000'000'000u);
}

TEST(Rate, EqualBitsPerSecondCompareEqual) {
  EXPECT_EQ(Rate::gbps(1), Rate::bps(1'000'000'000));
  EXPECT_NE(Rate::gbps(1), Rate());
  EXPECT_EQ(Rate::gbps(7).bits_per_second(), 7'000'000'000u);
}

}  // namespace
}  // namespace weft
