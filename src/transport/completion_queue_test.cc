#include "transport/completion_queue.h"

#include <gtest/gtest.h>

#include <array>

namespace weft::transport {
namespace {

TEST(CompletionQueue, APolledCompletionGivesItsPlaceBack) {
  CompletionQueue queue(3);
  for (int i = 0; i < 3; ++i) queue.reserve();
  EXPECT_FALSE(queue.has_room());
  for (std::uint64_t id = 1; id <= 3; ++id) queue.push({.id = id});
  EXPECT_FALSE(queue.has_room());
  std::array<Completion, 2> out;
  ASSERT_EQ(queue.poll(out), 2u);
  EXPECT_EQ(out[0].id, 1u);
  EXPECT_EQ(out[1].id, 2u);
  EXPECT_TRUE(queue.has_room());
  ASSERT_EQ(queue.poll(out), 1u);
  EXPECT_EQ(out[0].id, 3u);
  EXPECT_EQ(queue.poll(out), 0u);
}

TEST(CompletionQueue, WorkThatEndsWithoutACompletionGivesItsPlaceBack) {
  CompletionQueue queue(1);
  queue.reserve();
  queue.release(1);
  EXPECT_TRUE(queue.has_room());
}

TEST(CompletionQueueDeathTest, CompletionWithoutAReservedPlaceIsABug) {
  CompletionQueue queue(4);
  EXPECT_DEATH(queue.push({}), "weft bug");
  EXPECT_DEATH(queue.release(1), "weft bug");
  queue.reserve();
  queue.push({});
  EXPECT_DEATH(queue.release(1), "weft bug");  // the place belongs to the waiting completion
}

TEST(CompletionQueue, ForgetsTheCompletionsOfOneQpAndFreesTheirPlaces) {
  CompletionQueue queue(4);
  for (const Qpn qpn : {7u, 8u, 7u, 9u}) {
    queue.reserve();
    queue.push({.id = qpn, .qpn = qpn});
  }
  EXPECT_FALSE(queue.has_room());
  queue.forget(7);
  queue.reserve();
  queue.reserve();
  EXPECT_FALSE(queue.has_room());
  std::array<Completion, 4> out;
  ASSERT_EQ(queue.poll(out), 2u);
  EXPECT_EQ(out[0].qpn, 8u);
  EXPECT_EQ(out[1].qpn, 9u);
}

}  // namespace
}  // namespace weft::transport
