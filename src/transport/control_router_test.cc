#include "transport/control_router.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::transport {
namespace {

using Verdict = ControlRouter::Verdict;

constexpr std::uint32_t kPorts = 3;
constexpr PortMask kAll = 0b111;

// A peer that can be reached on all three planes.
struct Bench {
  explicit Bench(bool shares_port = false)
      : router({.port_count = kPorts, .shares_port = shares_port}) {
    peer.present = kAll;
    router.begin_pass();
  }
  // The port that a packet takes, 100 if it waits and 200 if it is dropped.
  int route(PortChoice choice, ControlRouter::Ports ports = {.up = kAll, .with_room = kAll},
            std::uint32_t index = 1) {
    ControlPacket packet{};
    packet.port = choice;
    packet.peer = index;
    const auto decision = router.decide(packet, &peer, ports);
    if (decision.verdict == Verdict::kWait) return 100;
    if (decision.verdict == Verdict::kDrop) return 200;
    router.on_sent(packet, decision.port);
    return decision.port;
  }
  void doubt(PortIndex port) { peer.planes[port].reverse.failures = Peer::kFailuresMax; }

  ControlRouter router;
  Peer peer;
};

constexpr int kWaits = 100, kDropped = 200;

TEST(ControlRouter, PlanesTakeTurns) {
  Bench bench;
  std::vector<int> ports;
  for (int i = 0; i < 4; ++i) ports.push_back(bench.route(PortChoice::in_turn()));
  EXPECT_EQ(ports, (std::vector<int>{0, 1, 2, 0}));
}

TEST(ControlRouter, PlanesThatAreFullOrInDoubtMissTheirTurn) {
  Bench bench;
  bench.doubt(0);
  EXPECT_EQ(bench.route(PortChoice::in_turn(), {.up = kAll, .with_room = 0b101}), 2);
  EXPECT_EQ(bench.route(PortChoice::in_turn()), 1);
  EXPECT_EQ(bench.route(PortChoice::in_turn()), 2);
}

TEST(ControlRouter, PlaneInDoubtIsNotTakenWhileAGoodOneIsOnlyFull) {
  Bench bench;
  bench.doubt(0);
  bench.doubt(1);
  EXPECT_EQ(bench.route(PortChoice::in_turn(), {.up = kAll, .with_room = 0b011}), kWaits);
  // The good plane is down: the planes in doubt take turns.
  const ControlRouter::Ports left{.up = 0b011, .with_room = 0b011};
  EXPECT_EQ(bench.route(PortChoice::in_turn(), left), 0);
  EXPECT_EQ(bench.route(PortChoice::in_turn(), left), 1);
  EXPECT_EQ(bench.route(PortChoice::in_turn(), left), 0);
}

TEST(ControlRouter, PlaneWithoutAReverseEvIsNeverTaken) {
  Bench bench;
  bench.peer.present = 0b110;
  EXPECT_EQ(bench.route(PortChoice::in_turn()), 1);
  bench.peer.turn = 0;
  bench.doubt(1);
  bench.doubt(2);
  EXPECT_EQ(bench.route(PortChoice::in_turn()), 1);
}

TEST(ControlRouter, PacketToAPeerThatNothingReachesIsDropped) {
  Bench bench;
  bench.peer.ports.reachable = 0;
  EXPECT_EQ(bench.route(PortChoice::in_turn()), kDropped);
  EXPECT_EQ(bench.route(PortChoice::prefer(1)), kDropped);
  EXPECT_EQ(bench.route(PortChoice::only(1)), 1);  // a packet for one port is sent all the same
}

TEST(ControlRouter, PacketForOnePortWaitsForItAndIsDroppedWhenItIsDown) {
  Bench bench;
  EXPECT_EQ(bench.route(PortChoice::only(1)), 1);
  EXPECT_EQ(bench.route(PortChoice::only(1), {.up = kAll, .with_room = 0b101}), kWaits);
  EXPECT_EQ(bench.route(PortChoice::only(1), {.up = 0b101, .with_room = 0b101}), kDropped);
}

TEST(ControlRouter, PacketToAnAddressNeedsNoPeer) {
  ControlRouter router({.port_count = kPorts});
  ControlPacket packet{};
  packet.port = PortChoice::only(2);
  packet.peer = ControlPacket::kNoPeer;
  const auto decision = router.decide(packet, nullptr, {.up = kAll, .with_room = kAll});
  EXPECT_EQ(decision.verdict, Verdict::kSend);
  EXPECT_EQ(decision.port, 2);
}

TEST(ControlRouter, PreferredPortIsTakenUnlessFullOrInDoubt) {
  Bench bench;
  EXPECT_EQ(bench.route(PortChoice::prefer(2)), 2);
  EXPECT_EQ(bench.route(PortChoice::prefer(2), {.up = kAll, .with_room = 0b011}), 0);
  bench.doubt(2);
  EXPECT_EQ(bench.route(PortChoice::prefer(2)), 1);
}

TEST(ControlRouter, PreferHeardTakesThePortThatThePeerWasHeardOn) {
  Bench bench;
  bench.peer.heard = 1;
  EXPECT_EQ(bench.route(PortChoice::prefer_heard()), 1);
  EXPECT_EQ(bench.route(PortChoice::in_turn()), 0);  // the turn has not moved
}

TEST(ControlRouter, CopyTakesAnotherPortThanTheOriginal) {
  Bench bench;
  bench.peer.heard = 0;
  EXPECT_EQ(bench.route(PortChoice::prefer_heard()), 0);
  EXPECT_EQ(bench.route(PortChoice::copy()), 1);
}

TEST(ControlRouter, CopyOfAnOriginalSentInAnotherPassAvoidsThePortLastHeard) {
  Bench bench;
  EXPECT_EQ(bench.route(PortChoice::prefer_heard()), 0);
  bench.router.begin_pass();
  bench.peer.heard = bench.peer.turn = 2;
  EXPECT_EQ(bench.route(PortChoice::copy()), 0);
  // The same when another packet was sent between the original and its copy.
  EXPECT_EQ(bench.route(PortChoice::prefer_heard()), 2);
  EXPECT_EQ(bench.route(PortChoice::in_turn()), 1);
  bench.peer.heard = 0;
  EXPECT_EQ(bench.route(PortChoice::copy()), 2);
}

TEST(ControlRouter, CopyAvoidsThePortThatTheOriginalTookInPlaceOfThePreferredOne) {
  Bench bench;
  bench.peer.heard = 0;
  bench.doubt(0);
  const ControlRouter::Ports two{.up = kAll, .with_room = 0b011};
  EXPECT_EQ(bench.route(PortChoice::prefer_heard(), two), 1);
  EXPECT_EQ(bench.route(PortChoice::copy(), two), kDropped);
}

TEST(ControlRouter, CopyWithoutAnotherGoodPortIsDropped) {
  Bench bench;
  bench.peer.heard = 0;
  bench.doubt(1);
  EXPECT_EQ(bench.route(PortChoice::prefer_heard()), 0);
  EXPECT_EQ(bench.route(PortChoice::copy(), {.up = kAll, .with_room = 0b011}), kDropped);
}

TEST(ControlRouter, PacketsToOnePeerShareAPortWhereSystemCallsCostTime) {
  Bench bench(true);
  EXPECT_EQ(bench.route(PortChoice::in_turn()), 0);
  EXPECT_EQ(bench.route(PortChoice::in_turn()), 0);
  EXPECT_EQ(bench.route(PortChoice::in_turn(), {.up = kAll, .with_room = 0b110}), 1);
  EXPECT_EQ(bench.route(PortChoice::in_turn()), 1);
  bench.router.begin_pass();
  EXPECT_EQ(bench.route(PortChoice::in_turn()), 2);
  // Packets to another peer, and packets that prefer a port, do not share it.
  const ControlRouter::Ports all{.up = kAll, .with_room = kAll};
  EXPECT_EQ(bench.route(PortChoice::in_turn(), all, 8), 0);
  EXPECT_EQ(bench.route(PortChoice::prefer(2), {.up = kAll, .with_room = 0b011}, 8), 1);
}

}  // namespace
}  // namespace weft::transport
