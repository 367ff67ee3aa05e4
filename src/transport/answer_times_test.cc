#include "transport/answer_times.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

constexpr Duration kBase = Duration::us(100), kTarget = Duration::us(400);

class AnswerTimesTest : public testing::Test {
 protected:
  AnswerTimes times(const PeerRules& peer) const {
    return {.peer = peer, .loss = loss, .answers = answers, .base_rtt = kBase, .target = kTarget};
  }
  LossDetector loss;
  DelaySpread answers;
};

TEST_F(AnswerTimesTest, NicIsExpectedToAnswerInARoundTripAndAFullQueueHoweverLateItIs) {
  answers.on_delay(Duration::ms(20));
  loss.on_delay(Duration::ms(20));
  EXPECT_EQ(times(kNicRules).lateness(), Duration());
  EXPECT_EQ(times(kNicRules).answer_time(), kBase + kTarget);
  EXPECT_EQ(times(kNicRules).retry_slack(), Duration());
  EXPECT_EQ(times(kNicRules).proof_time(), loss.reorder_window(kBase));
}

TEST_F(AnswerTimesTest, AnswerTimeOfSoftwareGrowsWithTheDelaysThatAnyQpSaw) {
  answers.on_delay(Duration::ms(5));
  EXPECT_EQ(times(kSoftwareRules).lateness(), Duration::ms(5) - kBase);
  loss.on_delay(Duration::ms(7));
  EXPECT_EQ(times(kSoftwareRules).lateness(), Duration::ms(7));
  EXPECT_EQ(times(kSoftwareRules).answer_time(), kBase + kTarget + Duration::ms(7));
  EXPECT_EQ(times(kSoftwareRules).retry_slack(), (kBase + Duration::ms(7)) * 2);
  EXPECT_EQ(times(kSoftwareRules).proof_time(), loss.reorder_window(kBase) + kBase * 2);
}

TEST_F(AnswerTimesTest, PauseOfSecondsIsNotExpectedAgain) {
  answers.on_delay(Duration::s(3));
  EXPECT_EQ(times(kSoftwareRules).lateness(), RetryTimer::kSlackMax / 2);
  EXPECT_EQ(times(kSoftwareRules).retry_slack(), RetryTimer::kSlackMax);
}

TEST_F(AnswerTimesTest, SoftwareThatHasNotAnsweredYetGetsAFixedSlack) {
  EXPECT_EQ(times(kSoftwareRules).retry_slack(), Duration::ms(40));
}

}  // namespace
}  // namespace weft::transport
