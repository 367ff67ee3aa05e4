#include "transport/evidence.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::transport {
namespace {

// The probability that at least k of 32 packets are lost, each with probability p.
double tail_of_32(double p, std::uint32_t k) {
  double sum = 0;
  for (std::uint32_t i = k; i <= 32; ++i) {
    const double ways = std::exp(std::lgamma(33) - std::lgamma(i + 1.0) - std::lgamma(33.0 - i));
    sum += ways * std::pow(p, i) * std::pow(1 - p, 32 - i);
  }
  return sum;
}

TEST(Evidence, ThresholdsRiseWithTheLossOfTheOtherEvs) {
  std::uint32_t row = 0, of_32 = 0;
  for (std::uint32_t ambient = 0; ambient <= 0x1'0000; ambient += 8) {
    EXPECT_GE(losses_in_a_row(ambient), row);
    EXPECT_GE(losses_of_32(ambient), of_32);
    row = losses_in_a_row(ambient);
    of_32 = losses_of_32(ambient);
    EXPECT_GE(row, 2u);
    EXPECT_EQ(plane_losses_in_a_row(ambient), 3 * row);
  }
  EXPECT_EQ(losses_in_a_row(0), 2u);
  EXPECT_EQ(losses_of_32(0), 2u);
  EXPECT_GT(losses_of_32(0x8000), 32u);  // never condemned: all EVs are bad
}

// At the upper end of each step chance alone reaches the threshold about once in a million packets.
TEST(Evidence, ChanceRarelyReachesTheThresholds) {
  for (std::uint32_t ambient : {64u, 655u, 2048u, 4096u, 8192u}) {
    const double p = ambient / 65536.0;
    EXPECT_LT(std::pow(p, losses_in_a_row(ambient)), 2e-6) << ambient;
    EXPECT_LT(tail_of_32(p, losses_of_32(ambient)), 1e-5) << ambient;
    // The threshold is at least four times the share that the other EVs lose.
    EXPECT_GE(losses_of_32(ambient) / 32.0, 4 * p) << ambient;
  }
}

// A path that loses half of its packets is distinguished from paths that lose one in a hundred.
TEST(Evidence, LossyPathReachesTheThresholds) {
  EXPECT_GT(tail_of_32(0.5, losses_of_32(655)), 0.99);
  EXPECT_GT(tail_of_32(0.2, losses_of_32(0)), 0.99);
}

}  // namespace
}  // namespace weft::transport
