#include "transport/port_status.h"

#include <gtest/gtest.h>

#include "transport/test_memory.h"

namespace weft::transport {
namespace {

using test::Sent;

Time at(std::int64_t us) { return Time::from_start(Duration::us(us)); }

struct Bench {
  explicit Bench(PortMask unlisted = 0) : ports({.port_count = 3, .unlisted = unlisted}) {}

  void start(Time now) { ports.start_update(now, 5, peer, ids, control); }
  void resend(Time now) {
    ports.begin_resend_round();
    ports.resend_if_due(now, 5, peer, control);
  }
  std::uint32_t status(const Sent& sent) {
    return std::get<wire::EndpointRequest>(sent.packet.body).port_status;
  }

  PortStatus ports;
  PortStatus::OfPeer peer;
  RequestIds ids;
  ControlQueue control{8};
};

TEST(PortStatus, PortIsUpWithACarrierAndNotDisabled) {
  Bench bench;
  EXPECT_TRUE(bench.ports.are_all_up());
  EXPECT_TRUE(bench.ports.set_carrier(1, false));
  EXPECT_FALSE(bench.ports.set_carrier(1, false));  // no change
  EXPECT_FALSE(bench.ports.set_disabled(1, true));  // it was down already
  EXPECT_FALSE(bench.ports.set_carrier(1, true));   // still disabled
  EXPECT_EQ(bench.ports.up(), 0b101);
  EXPECT_TRUE(bench.ports.is_disabled(1));
  EXPECT_TRUE(bench.ports.set_disabled(1, false));
  EXPECT_TRUE(bench.ports.is_up(1));
}

TEST(PortStatus, UpdateCountsPortsFromOneAndLeavesOutUnlistedOnes) {
  Bench bench(0b100);
  bench.ports.set_carrier(0, false);
  bench.start(at(0));
  const auto sent = test::take_all(bench.control);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].control.peer, 5u);
  EXPECT_EQ(bench.status(sent[0]), 0b100u);  // bit 2 is port 1
  EXPECT_TRUE(bench.peer.was_updated);
}

TEST(PortStatus, UnansweredUpdateIsRepeatedQuicklyThreeTimesAndThenSlowly) {
  Bench bench;
  bench.start(at(0));
  std::vector<Time> due;
  for (int i = 0; i < 5; ++i) {
    due.push_back(bench.ports.resend_at());
    bench.resend(due.back());
  }
  EXPECT_EQ(due, (std::vector<Time>{at(100), at(200), at(300), at(10'300), at(20'300)}));
  const auto sent = test::take_all(bench.control);
  ASSERT_EQ(sent.size(), 6u);
  for (const Sent& copy : sent) EXPECT_EQ(copy.packet.bth.psn, sent[0].packet.bth.psn);
  EXPECT_EQ(bench.ports.updates_sent(), 6u);
}

TEST(PortStatus, UpdateIsNotSentAgainBeforeItIsDue) {
  Bench bench;
  bench.start(at(0));
  bench.resend(at(99));
  EXPECT_EQ(bench.control.size(), 1u);
  EXPECT_EQ(bench.ports.resend_at(), at(100));
}

TEST(PortStatus, UpdateIsNotSentAgainOnceItIsAnswered) {
  Bench bench;
  bench.start(at(0));
  const std::uint16_t id = bench.peer.id;
  EXPECT_FALSE(bench.ports.on_answer(bench.peer, static_cast<std::uint16_t>(id + 1)));
  EXPECT_TRUE(bench.ports.on_answer(bench.peer, id));
  EXPECT_FALSE(bench.ports.on_answer(bench.peer, id));
  EXPECT_FALSE(bench.ports.on_answer(bench.peer, 0));
  bench.resend(at(100));
  EXPECT_EQ(bench.control.size(), 1u);
  EXPECT_EQ(bench.ports.resend_at(), kNever);
}

TEST(PortStatus, NewUpdateReplacesAnUnansweredOne) {
  Bench bench;
  bench.start(at(0));
  const std::uint16_t old = bench.peer.id;
  bench.start(at(50));
  EXPECT_FALSE(bench.ports.on_answer(bench.peer, old));
  EXPECT_EQ(bench.peer.tries, 1);
}

TEST(PortStatus, UpdateThatFindsTheQueueFullIsSentWhenDueNext) {
  Bench bench;
  while (bench.control.add() != nullptr) {
  }
  bench.start(at(0));
  EXPECT_EQ(bench.ports.updates_sent(), 0u);
  bench.control.pop();
  bench.resend(at(100));
  EXPECT_EQ(bench.ports.updates_sent(), 1u);
}

TEST(PortStatus, PeersUpdateSaysWhichPortsAreLostAndWhichAreBack) {
  Bench bench;
  auto change = bench.ports.on_update(at(0), bench.peer, 1, 0b1100);  // ports 1 and 2, from 0
  EXPECT_EQ(change.lost & 0b111, 0b001);
  EXPECT_EQ(change.back, 0);
  change = bench.ports.on_update(at(1), bench.peer, 2, 0b0110);
  EXPECT_EQ(change.lost, 0b100);
  EXPECT_EQ(change.back, 0b001);
  EXPECT_EQ(bench.peer.reachable, 0b011);
}

TEST(PortStatus, UnlistedPortsStayReachable) {
  Bench bench(0b100);
  bench.ports.on_update(at(0), bench.peer, 1, 0);
  EXPECT_EQ(bench.peer.reachable, 0b100);
}

TEST(PortStatus, LateUpdateDoesNotUndoANewerOne) {
  Bench bench;
  bench.ports.on_update(at(0), bench.peer, 0xffff, 0b1110);
  bench.ports.on_update(at(1), bench.peer, 3, 0b0010);  // newer: ids wrap around
  const auto change = bench.ports.on_update(at(2), bench.peer, 0xffff, 0b1110);
  EXPECT_EQ(change.lost | change.back, 0);
  EXPECT_EQ(bench.peer.reachable, 0b001);
  // After 10 ms the ids no longer tell the order.
  bench.ports.on_update(at(10'001), bench.peer, 0xffff, 0b1110);
  EXPECT_EQ(bench.peer.reachable, 0b111);
}

}  // namespace
}  // namespace weft::transport
