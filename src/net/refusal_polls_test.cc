#include "net/refusal_polls.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::net {
namespace {

constexpr Time at(std::int64_t ms) { return Time::from_start(Duration::ms(ms)); }

TEST(RefusalPolls, NothingIsPolledBeforeASend) {
  const RefusalPolls polls(4);
  EXPECT_EQ(polls.next(), kNever);
}

TEST(RefusalPolls, EveryPlaneIsPolledOnceMoreAfterTheLastSend) {
  RefusalPolls polls(3);
  polls.note_send(at(100));
  std::vector<std::uint32_t> planes;
  while (polls.next() != kNever) {
    planes.push_back(polls.plane());
    polls.note_poll(polls.next(), RefusalPolls::Left::kNone);
  }
  EXPECT_EQ(planes, (std::vector<std::uint32_t>{0, 1, 2, 0, 1}));
}

TEST(RefusalPolls, ASendDoesNotDelayThePollThatIsDue) {
  RefusalPolls polls(3);
  polls.note_send(at(100));
  polls.note_send(at(101));
  EXPECT_EQ(polls.next(), at(102));
}

TEST(RefusalPolls, PollingContinuesWhileRefusalsAreLeft) {
  RefusalPolls polls(1);
  polls.note_send(at(0));
  for (int ms = 2; ms < 100; ms += 2) {
    ASSERT_EQ(polls.next(), at(ms));
    polls.note_poll(at(ms), RefusalPolls::Left::kSome);
  }
  EXPECT_EQ(polls.next(), at(100));
}

}  // namespace
}  // namespace weft::net
