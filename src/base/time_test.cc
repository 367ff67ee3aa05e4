#include "base/time.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Duration, UnitsConvertIntoEachOther) {
  EXPECT_EQ(Duration::s(1), Duration::ms(1000));
  EXPECT_EQ(Duration::ms(1), Duration::us(1000));
  EXPECT_EQ(Duration::us(1), Duration::ns(1000));
  EXPECT_EQ(Duration::ns(1), Duration::ps(1000));
  EXPECT_EQ(Duration::ps(1'999).ns(), 1);
  EXPECT_EQ(Duration::ns(1'999).us(), 1);
  EXPECT_DOUBLE_EQ(Duration::ns(1'500).to_us(), 1.5);
}

TEST(Duration, AddsSubtractsScalesAndCompares) {
  Duration d = Duration::us(3);
  d += Duration::us(2);
  d -= Duration::us(1);
  EXPECT_EQ(d, Duration::us(4));
  EXPECT_EQ(d * 3 / 4, Duration::us(3));
  EXPECT_LT(Duration::us(1) - Duration::us(2), Duration());
  EXPECT_GT(Duration::us(1), Duration::ns(999));
}

TEST(Time, DifferenceOfTwoTimesIsADuration) {
  Time t = Time::from_start(Duration::ms(2));
  EXPECT_EQ(t - Time(), Duration::ms(2));
  EXPECT_EQ(t.since_start(), Duration::ms(2));
  t += Duration::us(5);
  EXPECT_EQ(t - Duration::us(5), Time::from_start(Duration::ms(2)));
  EXPECT_EQ(t.ps(), 2'005'000'000);
}

TEST(Time, NeverIsLaterThanAHundredDays) {
  EXPECT_GT(kNever, Time::from_start(Duration::s(100 * 24 * 3600)));
}

}  // namespace
}  // namespace weft
