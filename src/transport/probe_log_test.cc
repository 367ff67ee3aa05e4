#include "transport/probe_log.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

Time at(std::int64_t us) { return Time::from_start(Duration::us(us)); }

TEST(ProbeLog, TimeOfEachOfTheLastEightProbesIsFoundByItsId) {
  ProbeLog log;
  EXPECT_EQ(log.sent_at(0), kNever);
  EXPECT_EQ(log.sent_at(0xffff), kNever);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint16_t id = log.add(at(i), at(i - 1));
    EXPECT_EQ(log.newest_at(), at(i));
    ASSERT_EQ(log.sent_at(id), at(i - 1));
    ASSERT_EQ(log.sent_at(static_cast<std::uint16_t>(id + 1)), kNever) << "not sent yet";
    if (i < 8) continue;
    ASSERT_EQ(log.sent_at(static_cast<std::uint16_t>(id - 7)), at(i - 8));
    ASSERT_EQ(log.sent_at(static_cast<std::uint16_t>(id - 8)), kNever) << "forgotten";
  }
}

}  // namespace
}  // namespace weft::transport
