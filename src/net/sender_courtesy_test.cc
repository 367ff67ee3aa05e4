#include "net/sender_courtesy.h"

#include <gtest/gtest.h>

namespace weft::net {
namespace {

constexpr Time at(std::int64_t ms) { return Time::from_start(Duration::ms(ms)); }

TEST(SenderCourtesy, SenderToThisHostIsCourteousForHalfASecond) {
  SenderCourtesy courtesy;
  EXPECT_TRUE(courtesy.is_over(at(10)));
  EXPECT_TRUE(
      courtesy.on_oversubscribed(at(10), {.sent = 300, .received = 100, .is_from_here = true}));
  EXPECT_FALSE(courtesy.is_over(at(509)));
  EXPECT_TRUE(courtesy.is_over(at(510)));
}

TEST(SenderCourtesy, ReceiverIsNotCourteous) {
  SenderCourtesy courtesy;
  EXPECT_FALSE(
      courtesy.on_oversubscribed(at(10), {.sent = 200, .received = 100, .is_from_here = true}));
  // Counts only the packets since the previous call.
  EXPECT_FALSE(
      courtesy.on_oversubscribed(at(20), {.sent = 220, .received = 110, .is_from_here = true}));
  EXPECT_TRUE(
      courtesy.on_oversubscribed(at(30), {.sent = 250, .received = 120, .is_from_here = true}));
}

TEST(SenderCourtesy, SenderToAnotherHostIsNotCourteous) {
  SenderCourtesy courtesy;
  EXPECT_FALSE(courtesy.on_oversubscribed(at(10), {.sent = 300, .received = 1}));
}

}  // namespace
}  // namespace weft::net
