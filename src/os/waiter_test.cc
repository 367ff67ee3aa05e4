#include "os/waiter.h"

#include <gtest/gtest.h>

namespace weft::os {
namespace {

constexpr Time at(std::int64_t us) { return Time::from_start(Duration::us(us)); }

TEST(Waiter, LoopSpinsForItsSpinTimeBeforeItMaySleep) {
  Waiter waiter({.spin = Duration::us(200)});
  waiter.start(at(1000));
  EXPECT_FALSE(waiter.may_sleep(at(1000)));
  EXPECT_FALSE(waiter.may_sleep(at(1199)));
  EXPECT_TRUE(waiter.may_sleep(at(1200)));
}

TEST(Waiter, WorkBeginsTheSpinTimeAnew) {
  Waiter waiter({.spin = Duration::us(200)});
  waiter.start(at(1000));
  waiter.start(at(1150));
  EXPECT_FALSE(waiter.may_sleep(at(1349)));
  EXPECT_TRUE(waiter.may_sleep(at(1350)));
}

TEST(Waiter, LoopWithoutSpinTimeMaySleepAtOnce) {
  Waiter waiter({.spin = Duration()});
  waiter.start(at(1000));
  EXPECT_TRUE(waiter.may_sleep(at(1000)));
}

TEST(Waiter, ShortYieldDoesNotCountAsOversubscribed) {
  Waiter waiter;
  EXPECT_FALSE(waiter.note_yield(at(1000), at(1030)));
  EXPECT_FALSE(waiter.is_oversubscribed(at(1030)));
}

TEST(Waiter, LongYieldEndsSpinningForTwentyMilliseconds) {
  Waiter waiter({.spin = Duration::us(200)});
  EXPECT_TRUE(waiter.note_yield(at(1000), at(1031)));
  waiter.start(at(1031));
  EXPECT_TRUE(waiter.is_oversubscribed(at(1031)));
  EXPECT_TRUE(waiter.may_sleep(at(1031)));
  waiter.start(at(21'000));
  EXPECT_FALSE(waiter.is_oversubscribed(at(21'000)));
  EXPECT_FALSE(waiter.may_sleep(at(21'000)));
}

TEST(Waiter, OversubscribedLoopMayYieldForAWhileBeforeItSleeps) {
  Waiter waiter({.spin = Duration::us(200), .spin_oversubscribed = Duration::us(50)});
  waiter.note_yield(at(1000), at(2000));
  waiter.start(at(2000));
  EXPECT_FALSE(waiter.may_sleep(at(2049)));
  EXPECT_TRUE(waiter.may_sleep(at(2050)));
}

TEST(Waiter, LoopThatSpinsForeverDoesSoAlsoWhenOversubscribed) {
  Waiter waiter({.spin = kSpinForever});
  waiter.note_yield(at(1000), at(2000));
  waiter.start(at(2000));
  EXPECT_TRUE(waiter.is_oversubscribed(at(2000)));
  EXPECT_EQ(waiter.spin(at(2000)), kSpinForever);
  EXPECT_FALSE(waiter.may_sleep(at(3000)));
}

TEST(Waiter, FirstPassesDoNotYieldTheCore) {
  Waiter waiter({.yield_after = Duration::us(20)});
  // yield() would read the real clock, which is far beyond these times, so it would count as long.
  waiter.start(at(1));
  EXPECT_FALSE(waiter.yield(at(20)));
  EXPECT_TRUE(waiter.yield(at(21)));
  EXPECT_TRUE(waiter.is_oversubscribed(at(21)));
}

}  // namespace
}  // namespace weft::os
