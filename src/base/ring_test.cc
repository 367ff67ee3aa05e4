#include "base/ring.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/prng.h"

namespace weft {
namespace {

TEST(Ring, CapacityIsRoundedUpToAPowerOfTwo) {
  EXPECT_EQ(Ring<int>(1).capacity(), 1u);
  EXPECT_EQ(Ring<int>(5).capacity(), 8u);
  EXPECT_EQ(Ring<int>(8).capacity(), 8u);
  EXPECT_EQ(Ring<int>().capacity(), 0u);
  EXPECT_TRUE(Ring<int>().full());
  EXPECT_TRUE(Ring<int>().empty());
}

TEST(Ring, BehavesAsADequeUnderRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    Ring<std::uint32_t> ring(1 + prng.below(20));
    std::deque<std::uint32_t> model;
    for (int i = 0; i < 2000; ++i) {
      const std::uint32_t value = prng.below(1000);
      switch (prng.below(5)) {
        case 0:
        case 1:
          if (ring.full()) break;
          EXPECT_EQ(ring.push(value), value);
          model.push_back(value);
          break;
        case 2:
          if (ring.full()) break;
          ring.push_slot() = value;
          model.push_back(value);
          break;
        case 3:
          if (model.empty()) break;
          EXPECT_EQ(ring.front(), model.front());
          ring.pop();
          model.pop_front();
          break;
        default:
          if (prng.below(50) != 0) break;
          ring.clear();
          model.clear();
      }
      ASSERT_EQ(ring.size(), model.size());
      ASSERT_EQ(ring.empty(), model.empty());
      ASSERT_EQ(ring.full(), model.size() == ring.capacity());
      for (std::size_t k = 0; k < model.size(); ++k) ASSERT_EQ(std::as_const(ring)[k], model[k]);
    }
  }
}

TEST(RingDeathTest, AccessOutsideTheBoundsAsserts) {
  Ring<int> ring(2);
  EXPECT_DEATH(ring.pop(), "weft bug");
  EXPECT_DEATH(ring.front(), "weft bug");
  EXPECT_DEATH(ring[0], "weft bug");
  ring.push(1);
  ring.push(2);
  EXPECT_DEATH(ring.push(3), "weft bug");
  EXPECT_DEATH(ring[2], "weft bug");
}

}  // namespace
}  // namespace weft
