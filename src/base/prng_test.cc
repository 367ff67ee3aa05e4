#include "base/prng.h"

#include <gtest/gtest.h>

#include <array>

namespace weft {
namespace {

// Fixed values: draws are the same with every compiler and on every machine.
TEST(Prng, FirstDrawsAreTheGoldenValues) {
  Prng zero(0);
  EXPECT_EQ(zero.next(), 0xe220a8397b1dcdafu);  // SplitMix64's published first values
  EXPECT_EQ(zero.next(), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(zero.next(), 0x06c45d188009454fu);
  Prng answer(42);
  EXPECT_EQ(answer.next(), 0xbdd732262feb6e95u);
  EXPECT_EQ(answer.next(), 0x28efe333b266f103u);
  EXPECT_EQ(answer.next(), 0x47526757130f9f52u);
}

TEST(Prng, ForkedStreamsStartWithTheGoldenValues) {
  EXPECT_EQ(Prng(1).fork("loss").next(), 0x52faf6a08a20f36bu);
  EXPECT_EQ(Prng(1).fork("loss", 1).next(), 0x3ca40bfb8ad75f0bu);
  EXPECT_EQ(Prng(1).fork("ecn").next(), 0x8cae026614821429u);
}

TEST(Prng, BelowGivesTheGoldenValues) {
  Prng prng(7);
  for (std::uint32_t value : {38u, 1u, 90u, 58u, 45u, 24u, 46u, 32u})
    EXPECT_EQ(prng.below(100), value);
}

TEST(Prng, ForkingDoesNotChangeTheDrawsOfTheParent) {
  Prng a(3), b(3);
  a.fork("x").next();
  EXPECT_EQ(a.next(), b.next());
}

TEST(Prng, BelowIsUniformAndStaysInRange) {
  Prng prng(11);
  std::array<int, 7> count{};
  for (int i = 0; i < 70'000; ++i) ++count[prng.below(7)];
  for (int n : count) EXPECT_NEAR(n, 10'000, 400);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(prng.below(1), 0u);
}

TEST(Prng, ChanceIsTrueWithTheGivenProbability) {
  Prng prng(12);
  EXPECT_EQ(chance_from_ppm(1'000'000), std::uint64_t{1} << 32);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_TRUE(prng.chance(chance_from_ppm(1'000'000)));
    EXPECT_FALSE(prng.chance(0));
    hits += prng.chance(chance_from_ppm(50'000));
  }
  EXPECT_NEAR(hits, 5'000, 300);
}

static_assert(Prng(0).next() == 0xe220a8397b1dcdafu);  // usable at compile time

}  // namespace
}  // namespace weft
