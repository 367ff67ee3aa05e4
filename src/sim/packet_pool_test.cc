#include "sim/packet_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace weft::sim {
namespace {

TEST(PacketPool, ReturnsNoneBeyondItsBound) {
  PacketPool pool(3);
  std::set<std::uint32_t> taken;
  for (int i = 0; i < 3; ++i) taken.insert(pool.take());
  EXPECT_EQ(taken.size(), 3u);
  EXPECT_FALSE(taken.contains(PacketPool::kNone));
  EXPECT_EQ(pool.take(), PacketPool::kNone);
  EXPECT_EQ(pool.in_use(), 3u);
  pool.give_back(*taken.begin());
  EXPECT_EQ(pool.in_use(), 2u);
  EXPECT_NE(pool.take(), PacketPool::kNone);
  EXPECT_EQ(pool.take(), PacketPool::kNone);
}

TEST(PacketPool, ThePacketGivenBackLastIsTakenNext) {
  PacketPool pool(8);
  std::vector<std::uint32_t> taken;
  for (int i = 0; i < 8; ++i) taken.push_back(pool.take());
  for (const std::uint32_t index : {taken[5], taken[1], taken[6]}) pool.give_back(index);
  EXPECT_EQ(pool.take(), taken[6]);
  EXPECT_EQ(pool.take(), taken[1]);
  EXPECT_EQ(pool.take(), taken[5]);
}

// A pool with a bound of gigabytes takes no memory until packets are used.
TEST(PacketPool, ReportsOnlyTheMemoryThatWasTouched) {
  PacketPool pool(1u << 26);
  EXPECT_LT(pool.bytes(), 4096u);
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t index = pool.take();
    pool[index].wire_size = 64;
    pool.give_back(index);
  }
  EXPECT_LT(pool.bytes(), 4096u) << "only one packet was in use at a time";
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
}  // namespace weft::sim
