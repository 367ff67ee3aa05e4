#include "transport/ready_ring.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

TEST(ReadyRing, EachQpIsInTheRingOnce) {
  ReadyRing ring(4);
  bool ready[4] = {};
  ring.add(2, ready[2]);
  ring.add(1, ready[1]);
  ring.add(2, ready[2]);
  EXPECT_EQ(ring.size(), 2u);
  EXPECT_EQ(ring.front(), 2u);
  ring.rotate();
  EXPECT_EQ(ring.front(), 1u);
  ring.pop(ready[1]);
  EXPECT_FALSE(ready[1]);
  EXPECT_EQ(ring.front(), 2u);
  ring.pop(ready[2]);
  EXPECT_TRUE(ring.empty());
}

TEST(ReadyRing, DestroyedQpLosesItsTurnAndTheOthersKeepTheirs) {
  ReadyRing ring(4);
  bool ready[4] = {};
  for (std::uint32_t i = 0; i < 4; ++i) ring.add(i, ready[i]);
  ring.forget(1);
  for (const std::uint32_t left : {0u, 2u, 3u}) {
    EXPECT_EQ(ring.front(), left);
    ring.pop(ready[left]);
  }
  EXPECT_TRUE(ring.empty());
}

TEST(ReadyRingDeathTest, QpWhoseFlagIsNotSetIsNotInTheRing) {
  ReadyRing ring(4);
  bool ready = false, other = false;
  ring.add(0, ready);
  EXPECT_DEATH(ring.pop(other), "weft bug");
}

}  // namespace
}  // namespace weft::transport
