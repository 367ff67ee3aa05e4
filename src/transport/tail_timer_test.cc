#include "transport/tail_timer.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

Time at(std::int64_t us) { return Time::from_start(Duration::us(us)); }

TEST(TailTimer, DeadlineOnlyMovesNearerUnlessItIsSet) {
  TailTimer timer;
  EXPECT_FALSE(timer.is_armed());
  timer.no_later_than(at(10));
  EXPECT_EQ(timer.deadline(), at(10));
  timer.no_later_than(at(20));
  EXPECT_EQ(timer.deadline(), at(10));
  timer.set(at(20));
  EXPECT_EQ(timer.deadline(), at(20));
  timer.disarm();
  EXPECT_FALSE(timer.is_armed());
}

TEST(TailTimer, TimerFiresSixteenTimesWithoutProgress) {
  TailTimer timer;
  for (int i = 0; i < TailTimer::kTries; ++i) {
    EXPECT_FALSE(timer.is_exhausted());
    timer.on_fired(at(i));
    EXPECT_TRUE(timer.has_fired());
  }
  EXPECT_TRUE(timer.is_exhausted());
  timer.on_progress();
  EXPECT_FALSE(timer.has_fired());
  EXPECT_FALSE(timer.is_exhausted());
}

}  // namespace
}  // namespace weft::transport
