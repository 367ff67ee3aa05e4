#include "transport/retry_timer.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

constexpr RetryConfig kConfig{.timeout = 4, .linear_count = 3, .exponential_count = 4};
constexpr Duration kUnit = Duration::ns(1024) * 16;

TEST(RetryTimer, IntervalsAreLinearThenDoubleThenEnd) {
  RetryTimer timer(kConfig);
  EXPECT_FALSE(timer.is_armed());
  EXPECT_EQ(timer.deadline(), kNever);
  Time now;
  timer.arm(now);
  for (std::int64_t step : {1, 1, 1, 1, 2, 4, 8}) {
    EXPECT_EQ((timer.deadline() - now).ns(), (kUnit * step).ns());
    EXPECT_EQ(timer.started(), now);
    now = timer.deadline();
    EXPECT_TRUE(timer.expire(now));
    EXPECT_TRUE(timer.is_backed_off());
  }
  EXPECT_EQ((timer.deadline() - now).ns(), (kUnit * 16).ns());
  EXPECT_FALSE(timer.expire(timer.deadline()));
}

TEST(RetryTimer, ArmingDoesNotRestartTheCurrentInterval) {
  RetryTimer timer(kConfig);
  timer.arm(Time());
  const Time deadline = timer.deadline();
  timer.arm(Time::from_start(Duration::us(1)));
  EXPECT_EQ(timer.deadline(), deadline);
  timer.restart(Time::from_start(Duration::us(1)));
  EXPECT_EQ(timer.deadline(), deadline + Duration::us(1));
}

TEST(RetryTimer, RestartKeepsTheCountOfExpiriesAndProgressResetsIt) {
  RetryTimer timer(kConfig);
  Time now;
  timer.arm(now);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(timer.expire(now = timer.deadline()));
  timer.restart(now);
  EXPECT_EQ((timer.deadline() - now).ns(), (kUnit * 4).ns());
  timer.on_progress(now);
  EXPECT_FALSE(timer.is_backed_off());
  EXPECT_EQ((timer.deadline() - now).ns(), kUnit.ns());
}

TEST(RetryTimer, DisarmedTimerStaysDisarmed) {
  RetryTimer timer(kConfig);
  timer.arm(Time());
  timer.disarm();
  EXPECT_EQ(timer.deadline(), kNever);
  timer.on_progress(Time());
  EXPECT_FALSE(timer.is_armed());
}

TEST(RetryTimer, RetryCount25NeverEndsAndTheIntervalIsBounded) {
  RetryTimer timer({.timeout = 20, .linear_count = 0, .exponential_count = kRetryForever});
  Time now;
  timer.arm(now);
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(timer.expire(now = timer.deadline()));
  EXPECT_EQ((timer.deadline() - now).ns(), std::int64_t{1024} << 24);
}

TEST(RetryTimer, ZeroRetriesGiveUpAtOnce) {
  RetryTimer timer({.timeout = 4, .linear_count = 0, .exponential_count = 0});
  timer.arm(Time());
  EXPECT_FALSE(timer.expire(timer.deadline()));
}

}  // namespace
}  // namespace weft::transport
