#include "base/psn.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace weft {
namespace {

TEST(Psn, KeepsOnlyTheLow24Bits) {
  EXPECT_EQ(Psn(0x123'4567).value(), 0x23'4567u);
  EXPECT_EQ(Psn(0x100'0000), Psn(0));
  EXPECT_EQ(Psn().value(), 0u);
}

TEST(Psn, SinceIsTheShorterSignedDistanceOnTheCircle) {
  EXPECT_EQ(Psn(5).since(Psn(3)), 2);
  EXPECT_EQ(Psn(3).since(Psn(5)), -2);
  EXPECT_EQ(Psn(0).since(Psn(0xff'ffff)), 1);
  EXPECT_EQ(Psn(0xff'ffff).since(Psn(0)), -1);
  EXPECT_EQ(Psn(0x7f'ffff).since(Psn(0)), 0x7f'ffff);
  EXPECT_EQ(Psn(0x80'0000).since(Psn(0)), -0x80'0000);
  EXPECT_EQ(Psn(0).since(Psn(0x80'0000)), -0x80'0000);
}

TEST(Psn, SinceIsTheInverseOfAddition) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Prng prng(seed);
    for (int i = 0; i < 1000; ++i) {
      const Psn psn(prng.below(0x100'0000));
      const std::int32_t step = static_cast<std::int32_t>(prng.below(0x100'0000)) - 0x80'0000;
      ASSERT_EQ((psn + step).since(psn), step) << "seed " << seed;
      ASSERT_EQ(psn + step - step, psn) << "seed " << seed;
      const Psn other(prng.below(0x100'0000));
      ASSERT_EQ(other + psn.since(other), psn) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace weft
