#include "transport/loss.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

constexpr Duration kRtt = Duration::us(12);

TEST(LossDetector, WindowIsAQuarterOfTheRttWhenPathsAreAlike) {
  LossDetector loss;
  EXPECT_EQ(loss.reorder_window(kRtt), kRtt / 4);
  for (int i = 0; i < 100; ++i) loss.on_delay(Duration());
  EXPECT_EQ(loss.reorder_window(kRtt), kRtt / 4);
}

TEST(LossDetector, WindowFollowsTheSpreadUpAtOnceAndDownSlowly) {
  LossDetector loss;
  loss.on_delay(Duration::us(8));
  EXPECT_EQ(loss.reorder_window(kRtt), kRtt / 4 + Duration::us(8));
  loss.on_delay(Duration());
  EXPECT_GT(loss.reorder_window(kRtt), kRtt / 4 + Duration::us(7));
  for (int i = 0; i < 1000; ++i) loss.on_delay(Duration());
  EXPECT_LT(loss.reorder_window(kRtt), kRtt / 4 + Duration::ns(10));
}

TEST(LossDetector, WindowGrowsWithEverySpuriousLossUpToTwoRtts) {
  LossDetector loss;
  const LossDetector::Spurious mistake{.more = kRtt / 4, .most = kRtt * 2};
  Duration last = loss.reorder_window(kRtt);
  for (int i = 0; i < 8; ++i) {
    loss.on_spurious(mistake);
    EXPECT_EQ((loss.reorder_window(kRtt) - last).ns(), (kRtt / 4).ns());
    last = loss.reorder_window(kRtt);
  }
  for (int i = 0; i < 100; ++i) loss.on_spurious(mistake);
  EXPECT_EQ(loss.reorder_window(kRtt), kRtt / 4 + kRtt * 2);
  for (int i = 0; i < 20'000; ++i) loss.on_delay(Duration());
  EXPECT_LT(loss.reorder_window(kRtt), kRtt / 4 + Duration::ns(10));
}

// All delays are long, but no packet overtakes another: a small window is enough.
TEST(LossDetector, LargestOvertakingSeenBoundsTheWindow) {
  LossDetector loss;
  const auto sacks = [&](int count, Duration overtaken_by) {
    for (int i = 0; i < count; ++i) {
      loss.on_delay(kRtt);
      loss.on_order(overtaken_by);
    }
  };
  sacks(255, Duration::us(2));
  EXPECT_EQ(loss.reorder_window(kRtt), kRtt / 4 + kRtt);  // too few samples
  sacks(1, Duration::us(2));
  EXPECT_EQ(loss.reorder_window(kRtt), kRtt / 4 + Duration::us(4));
  sacks(1, Duration::us(5));
  EXPECT_EQ(loss.reorder_window(kRtt), kRtt / 4 + Duration::us(10));
  sacks(64, Duration());
  EXPECT_GT(loss.reorder_window(kRtt), kRtt / 4 + Duration::us(9));  // decays slowly
  loss.forget_order();
  EXPECT_EQ(loss.reorder_window(kRtt), kRtt / 4 + kRtt);
  sacks(256, kRtt * 10);
  EXPECT_EQ(loss.reorder_window(kRtt), kRtt / 4 + kRtt);  // the delays bound the window too
}

TEST(Knowledge, CompleteOnlyWhenTheCountsAgree) {
  EXPECT_EQ(knowledge(true, 0, 0), Knowledge::kComplete);
  EXPECT_EQ(knowledge(true, 5, 5), Knowledge::kComplete);
  EXPECT_EQ(knowledge(true, 5, 4), Knowledge::kPartial);
  EXPECT_EQ(knowledge(true, 4, 5), Knowledge::kPartial);
  EXPECT_EQ(knowledge(false, 5, 5), Knowledge::kPartial);           // an old SACK
  EXPECT_EQ(knowledge(true, 0x7fff, 0x7fff), Knowledge::kPartial);  // the field is saturated
}

}  // namespace
}  // namespace weft::transport
