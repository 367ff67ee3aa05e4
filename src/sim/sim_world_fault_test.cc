// The effects of faults on packets and hosts; the same seed gives the same run.
#include <gtest/gtest.h>

#include "sim/sim_world.h"
#include "sim/test_node.h"

namespace weft::sim {
namespace {

using fabric::FaultAction;
using fabric::FaultEvent;
using fabric::FaultPlace;
using fabric::ImpairmentKind;

constexpr Time kStart = us(10);
constexpr std::uint64_t kAlways = 1ull << 32;

FaultEvent event(Time at, FaultAction action) {
  FaultEvent out;
  out.at = at;
  out.action = action;
  return out;
}
FaultEvent on_link(Time at, FaultAction action, fabric::LinkId link) {
  FaultEvent out = event(at, action);
  out.link = link;
  return out;
}
FaultEvent on_host(Time at, FaultAction action, fabric::HostIndex host) {
  FaultEvent out = event(at, action);
  out.host = host;
  return out;
}
FaultEvent impair(ImpairmentKind kind, std::uint64_t share, Duration delay_max = {}) {
  FaultEvent out = event(us(0), FaultAction::kImpair);
  out.place = FaultPlace::kNicReceive;
  out.impairment.kind = kind;
  out.impairment.share_of_2_32 = share;
  out.impairment.delay_max = delay_max;
  return out;
}

// The time when packet i of a burst from host 0 reaches the switch.
Time at_switch(int i) { return kStart + Bench::packet_time() * (i + 1) + Duration::ns(500); }

TEST(SimWorldFaults, ALinkThatGoesDownLosesItsQueuedAndInFlightPackets) {
  // Hosts 0 and 1 send to host 2 at twice the rate of its link. The link goes down while packets
  // are on it and in its queue.
  Bench bench(one_switch(3));
  for (int i = 0; i < 10; ++i) bench.send(0, 2, {.at = kStart}), bench.send(1, 2, {.at = kStart});
  // At that time four packets have arrived and one is on the link. The others are queued or arrive
  // at the switch later.
  const Time down = at_switch(0) + Bench::packet_time() * 4 + Duration::ns(501);
  bench.fault(on_link(down, FaultAction::kLinkDown, bench.topology().host_down(0, 2)));
  bench.world().step(us(1000));
  EXPECT_EQ(bench.node(2).received.size(), 4u);
  EXPECT_EQ(bench.world().counters().drops_down, 16u);
}

TEST(SimWorldFaults, PacketsQueuedWhenALinkWentDownDoNotArriveAfterItsRepair) {
  Bench bench(one_switch(2));
  for (std::uint8_t i = 0; i < 10; ++i) bench.send(0, 1, {.at = kStart, .mark = i});
  bench.send(0, 1, {.at = us(200), .mark = 99});
  const fabric::LinkId link = bench.topology().host_down(0, 1);
  bench.fault(on_link(at_switch(1) + Duration::ns(600), FaultAction::kLinkDown, link));
  bench.fault(on_link(us(100), FaultAction::kLinkUp, link));
  bench.world().step(us(1000));
  const auto& received = bench.node(1).received;
  ASSERT_EQ(received.size(), 2u)
      << "the one that arrived before the fault, and the one sent after the repair";
  EXPECT_EQ(received[0].mark, 0);
  EXPECT_EQ(received[1].mark, 99);
  EXPECT_EQ(received[1].at.ps(), (us(200) + (Bench::packet_time() + Duration::ns(500)) * 2).ps())
      << "the queue is empty after the repair";
}

TEST(SimWorldFaults, AFaultOnOneDirectionDoesNotAffectTheOther) {
  Bench bench(one_switch(2));
  bench.fault(on_link(us(5), FaultAction::kLinkDown, bench.topology().host_up(0, 0)));
  bench.send(0, 1, {.at = kStart});
  bench.send(1, 0, {.at = kStart});
  bench.world().step(us(100));
  EXPECT_TRUE(bench.node(1).received.empty());
  EXPECT_EQ(bench.node(0).received.size(), 1u);
}

TEST(SimWorldFaults, AHostSeesTheCarrierOfItsIncomingLinkOnly) {
  Bench bench(one_switch(2, 2));
  FaultEvent down = on_link(us(5), FaultAction::kLinkDown, bench.topology().host_down(1, 0));
  bench.fault(down);
  bench.fault(on_link(us(9), FaultAction::kLinkUp, down.link));
  FaultEvent silent = on_link(us(5), FaultAction::kLinkDown, bench.topology().host_down(0, 1));
  silent.carrier = false;
  bench.fault(silent);
  bench.fault(on_link(us(6), FaultAction::kLinkDown, bench.topology().host_up(0, 1)));
  bench.world().step(us(100));
  const auto& seen = bench.node(0).ports;
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].at, us(5));
  EXPECT_EQ(seen[0].port, 1);
  EXPECT_FALSE(seen[0].up);
  EXPECT_EQ(seen[1].at, us(9));
  EXPECT_TRUE(seen[1].up);
  EXPECT_TRUE(bench.node(1).ports.empty())
      << "one fault is silent, and a host does not see the carrier of its outgoing link";
}

TEST(SimWorldFaults, ASlowLinkTakesLongerAndQueuesFewerPackets) {
  switching::QueueParams queue = Bench::deep_queue();
  queue.data_bytes_max = 16 * Bench::packet_size();
  Bench bench(Bench::config(one_switch(6), queue));
  FaultEvent slow = on_link(us(5), FaultAction::kLinkRate, bench.topology().host_down(0, 5));
  slow.percent = 25;
  bench.fault(slow);
  for (std::uint32_t host = 0; host < 5; ++host)
    bench.send(host, 5, {.at = kStart, .dscp = world::Dscp::kNoTrim});
  bench.world().step(us(100));
  const auto& received = bench.node(5).received;
  ASSERT_EQ(received.size(), 4u) << "a quarter of sixteen packets";
  EXPECT_EQ((received[0].at - kStart).ps(), (Bench::packet_time() * 5 + Duration::us(1)).ps());
  EXPECT_EQ((received[1].at - received[0].at).ps(), (Bench::packet_time() * 4).ps());
  slow.at = us(200);
  slow.percent = 100;
  bench.fault(slow);
  bench.send(0, 5, {.at = us(300)});
  bench.world().step(us(400));
  EXPECT_EQ((received.back().at - us(300)).ps(), (Bench::packet_time() * 2 + Duration::us(1)).ps());
}

TEST(SimWorldFaults, APausedHostGetsItsPacketsAndDeadlineOnResume) {
  Bench bench(one_switch(2));
  bench.fault(on_host(us(5), FaultAction::kPause, 1));
  bench.fault(on_host(us(500), FaultAction::kResume, 1));
  bench.fault(on_link(us(6), FaultAction::kLinkDown, bench.topology().host_down(0, 1)));
  bench.fault(on_link(us(7), FaultAction::kLinkUp, bench.topology().host_down(0, 1)));
  for (int i = 0; i < 5; ++i) bench.send(0, 1, {.at = kStart});
  bench.send(1, 0, {.at = us(20)});
  ScriptedNode& paused = bench.node(1);
  bench.world().step(us(499));
  EXPECT_TRUE(paused.received.empty());
  EXPECT_TRUE(paused.deadlines.empty());
  EXPECT_TRUE(paused.ports.empty());
  EXPECT_TRUE(bench.node(0).received.empty()) << "a paused host sends nothing";
  bench.world().step(us(1000));
  ASSERT_EQ(paused.deadlines.size(), 1u);
  EXPECT_EQ(paused.deadlines[0].at, us(500));
  EXPECT_EQ(paused.deadlines[0].late_by, Duration::us(495)) << "the length of the pause";
  ASSERT_EQ(paused.received.size(), 5u);
  EXPECT_EQ(paused.received[0].at, us(500));
  EXPECT_EQ(paused.received[0].batch, 5u);
  ASSERT_EQ(paused.ports.size(), 1u) << "the current state of its only port";
  EXPECT_TRUE(paused.ports[0].up);
  EXPECT_EQ(bench.node(0).received.size(), 1u);
}

TEST(SimWorldFaults, TheBacklogOfAPausedHostIsBounded) {
  SimConfig config = Bench::config(one_switch(2), Bench::deep_queue());
  config.host_backlog_max = 3;
  Bench bench(config);
  bench.fault(on_host(us(5), FaultAction::kPause, 1));
  bench.fault(on_host(us(500), FaultAction::kResume, 1));
  for (int i = 0; i < 5; ++i) bench.send(0, 1, {.at = kStart});
  bench.world().step(us(1000));
  EXPECT_EQ(bench.node(1).received.size(), 3u);
  EXPECT_EQ(bench.world().counters().drops_host, 2u);
}

TEST(SimWorldFaults, ACrashedHostNeitherSendsNorReceives) {
  Bench bench(one_switch(2));
  bench.fault(on_host(us(50), FaultAction::kCrash, 1));
  bench.send(0, 1, {.at = kStart});
  bench.send(0, 1, {.at = us(60)});
  bench.send(1, 0, {.at = us(60)});
  bench.world().step(us(1000));
  EXPECT_TRUE(bench.world().is_crashed(1));
  EXPECT_EQ(bench.node(1).received.size(), 1u);
  EXPECT_TRUE(bench.node(1).deadlines.empty());
  EXPECT_TRUE(bench.node(0).received.empty());
  EXPECT_EQ(bench.world().counters().drops_down, 1u);
}

TEST(SimWorldFaults, ADuplicatedPacketArrivesTwice) {
  Bench bench(one_switch(2));
  bench.fault(impair(ImpairmentKind::kDuplicate, kAlways));
  for (std::uint8_t i = 0; i < 3; ++i) bench.send(0, 1, {.at = kStart, .mark = i});
  bench.world().step(us(100));
  const auto& received = bench.node(1).received;
  ASSERT_EQ(received.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(received[i].mark, i / 2);
}

TEST(SimWorldFaults, ADuplicateOnOneLinkDoesNotAffectTheOtherDirection) {
  Bench bench(one_switch(2));
  FaultEvent fault = impair(ImpairmentKind::kDuplicate, kAlways);
  fault.place = FaultPlace::kLink;
  fault.link = bench.topology().host_up(0, 0);
  bench.fault(fault);
  bench.send(0, 1, {.at = kStart});
  bench.send(1, 0, {.at = kStart});
  bench.world().step(us(100));
  EXPECT_EQ(bench.node(1).received.size(), 2u);
  EXPECT_EQ(bench.node(0).received.size(), 1u) << "the other direction is another link";
}

// A duplicate must not be delivered to a host while the host is paused.
TEST(SimWorldFaults, ADuplicateIsNotDeliveredToAPausedHost) {
  Bench bench(one_switch(2));
  bench.fault(impair(ImpairmentKind::kDuplicate, kAlways));
  bench.fault(on_host(us(5), FaultAction::kPause, 1));
  bench.fault(on_host(us(500), FaultAction::kResume, 1));
  bench.send(0, 1, {.at = kStart});
  bench.world().step(us(400));
  EXPECT_TRUE(bench.node(1).received.empty());
  bench.world().step(us(600));
  EXPECT_EQ(bench.node(1).received.size(), 2u);
}

TEST(SimWorldFaults, APacketIsDelayedAtMostOnceAndCanBeOvertaken) {
  Bench bench(one_switch(2));
  bench.fault(impair(ImpairmentKind::kReorder, kAlways, Duration::us(50)));
  for (std::uint8_t i = 0; i < 50; ++i) bench.send(0, 1, {.at = kStart, .mark = i});
  bench.world().step(us(1000));
  const auto& received = bench.node(1).received;
  ASSERT_EQ(received.size(), 50u);
  bool overtaken = false;
  for (std::size_t i = 0; i < 50; ++i) {
    const Time undisturbed =
        kStart + Bench::packet_time() * (received[i].mark + 2) + Duration::us(1);
    EXPECT_GE(received[i].at, undisturbed);
    EXPECT_LT(received[i].at - undisturbed, Duration::us(50));
    overtaken |= i > 0 && received[i].mark < received[i - 1].mark;
  }
  EXPECT_TRUE(overtaken);
}

TEST(SimWorldFaults, ADamagedPacketIsDeliveredAsNotIntact) {
  Bench bench(one_switch(2));
  bench.fault(impair(ImpairmentKind::kCorrupt, kAlways));
  bench.fault(event(us(50), FaultAction::kHeal));
  bench.send(0, 1, {.at = kStart});
  bench.send(0, 1, {.at = us(60)});
  bench.world().step(us(100));
  ASSERT_EQ(bench.node(1).received.size(), 2u);
  EXPECT_FALSE(bench.node(1).received[0].datagram.intact);
  EXPECT_TRUE(bench.node(1).received[1].datagram.intact);
}

// --- the seed ---

std::uint64_t hash_of(std::uint64_t seed) {
  SimConfig config = Bench::config(two_racks(4), Bench::deep_queue());
  config.seed = seed;
  Bench bench(config);
  bench.fault(impair(ImpairmentKind::kLoss, kAlways / 2));
  for (std::uint8_t i = 0; i < 64; ++i) bench.send(0, 2, {.at = kStart, .mark = i});
  bench.world().step(us(1000));
  EXPECT_EQ(bench.world().counters().packets_sent,
            bench.world().counters().packets_delivered + bench.world().counters().drops_fault);
  return bench.world().trace_hash();
}

TEST(SimWorldFaults, TheSameSeedGivesTheSameHash) {
  EXPECT_EQ(hash_of(1), hash_of(1));
  EXPECT_NE(hash_of(1), hash_of(2));
}

}  // namespace
}  // namespace weft::sim
