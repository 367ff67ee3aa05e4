#include "net/poll_order.h"

#include <gtest/gtest.h>

namespace weft::net {
namespace {

constexpr Time at(std::int64_t us) { return Time::from_start(Duration::us(us)); }
constexpr PollOrder::Runs kData{.count = 1, .size = 4000, .segment = 1000};
constexpr PollOrder::Runs kAnswers{.count = 1, .size = 80, .segment = 40, .answers = true};

TEST(PollOrder, PlaneThatGaveDataIsPolledAloneForAMoment) {
  PollOrder order;
  EXPECT_FALSE(order.is_plane_busy(at(100)));
  order.note_plane(at(100), 2, kData);
  EXPECT_EQ(order.busy_plane(), 2u);
  EXPECT_TRUE(order.is_plane_busy(at(119)));
  EXPECT_FALSE(order.is_plane_busy(at(120)));
}

TEST(PollOrder, ControlPacketsPredictNoPlane) {
  PollOrder order;
  order.note_plane(at(100), 2, kData);
  order.note_plane(at(101), 3, kAnswers);
  EXPECT_EQ(order.busy_plane(), 2u);
}

TEST(PollOrder, RightAfterASendNoPlaneIsPolledAlone) {
  PollOrder order;
  order.note_plane(at(100), 0, kData);
  order.note_transmit(PollOrder::Sent::kPackets);
  EXPECT_FALSE(order.is_plane_busy(at(101)));
  order.note_transmit(PollOrder::Sent::kNothing);
  EXPECT_TRUE(order.is_plane_busy(at(101)));
}

TEST(PollOrder, AfterASingleRunOnlyOneIsAskedFor) {
  PollOrder order;
  EXPECT_EQ(order.runs_max(), PollOrder::kRunsMax);
  order.note_plane(at(1), 0, {.count = 1, .size = 1000, .segment = 1000});
  EXPECT_EQ(order.runs_max(), 1u);
  order.note_plane(at(2), 0, kData);
  EXPECT_EQ(order.runs_max(), PollOrder::kRunsMax);
  order.note_plane(at(3), 0, kAnswers);  // one control packet may come with a Transport ACK
  EXPECT_EQ(order.runs_max(), 1u);
  order.note_plane(at(4), 0, {.count = 3, .size = 64'000, .segment = 4000});
  EXPECT_EQ(order.runs_max(), 2u);
}

TEST(PollOrder, OtherSocketsWaitForAShortTimeWhileARingOrAPolledPlaneIsBusy) {
  PollOrder order;
  order.note_all_polled(at(100));
  EXPECT_FALSE(order.may_others_wait(at(101), false));
  EXPECT_TRUE(order.may_others_wait(at(105), true));
  EXPECT_FALSE(order.may_others_wait(at(106), true));
  order.note_ring(at(101));
  EXPECT_TRUE(order.may_others_wait(at(120), false));
  EXPECT_FALSE(order.may_others_wait(at(121), false));
  EXPECT_FALSE(order.is_poll_of_all_due(at(119)));
  EXPECT_TRUE(order.is_poll_of_all_due(at(120)));
}

}  // namespace
}  // namespace weft::net
