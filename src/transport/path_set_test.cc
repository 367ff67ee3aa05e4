// The choice of the next EV: turns, marks, policies, denial (reference sections 4.4, 4.5, 4.7).
#include "transport/path_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "transport/test_memory.h"

namespace weft::transport {
namespace {

using test::make_evs;
using Slot = PathSet::Slot;

constexpr Duration kRtt = Duration::us(10);
constexpr PortMask kAll = 0xff;

Time at(std::int64_t us) { return Time::from_start(Duration::us(us)); }

struct Shape {
  std::uint32_t ports = 1, per_port = 8, active = 8, min_active = 2;
  Policy policy = Policy::kMrc;
  Condemn condemn = Condemn::kRelative;
  std::uint64_t seed = 1;
};
PathSet make(const Shape& s) {
  return PathSet({.policy = s.policy,
                  .condemn = s.condemn,
                  .active = s.active,
                  .min_active = s.min_active,
                  .port_count = s.ports,
                  .seed = s.seed},
                 make_evs({.ports = s.ports, .per_port = s.per_port}));
}
std::vector<Slot> take(PathSet& paths, int count, PortMask usable = kAll) {
  std::vector<Slot> slots;
  for (int i = 0; i < count; ++i) slots.push_back(paths.next(at(1), usable, kRtt));
  return slots;
}

TEST(PathSet, PlanesTakeEqualTurns) {
  for (std::uint32_t ports = 1; ports <= 8; ++ports) {
    PathSet paths = make({.ports = ports, .per_port = 5, .active = ports * 4});
    std::map<PortIndex, int> count;
    PortIndex last = 0xff;
    for (Slot slot : take(paths, 840)) {
      const PortIndex port = paths.ev(slot).port;
      if (ports > 1) {
        EXPECT_NE(port, last);
      }
      last = port;
      ++count[port];
    }
    ASSERT_EQ(count.size(), ports);
    for (const auto& [port, n] : count) EXPECT_EQ(n, static_cast<int>(840 / ports));
  }
}

TEST(PathSet, EveryCycleUsesEachEvInRotationOnce) {
  PathSet paths = make({.ports = 2, .per_port = 10, .active = 16});
  std::set<std::vector<Slot>> orders;
  for (int cycle = 0; cycle < 20; ++cycle) {
    const auto slots = take(paths, 16);
    EXPECT_EQ(std::set<Slot>(slots.begin(), slots.end()).size(), 16u);
    orders.insert(slots);
  }
  EXPECT_GT(orders.size(), 15u);  // in a fresh order each time
}

TEST(PathSet, OrderDependsOnTheSeed) {
  PathSet a = make({.seed = 5}), b = make({.seed = 5}), c = make({.seed = 6});
  const auto first = take(a, 64);
  EXPECT_EQ(first, take(b, 64));
  EXPECT_NE(first, take(c, 64));
}

TEST(PathSet, OnlyUsablePortsAreChosen) {
  PathSet paths = make({.ports = 4, .active = 32});
  for (Slot slot : take(paths, 100, 0b0101)) EXPECT_EQ(paths.ev(slot).port % 2, 0);
  EXPECT_EQ(paths.next(at(1), 0, kRtt), PathSet::kNone);
  EXPECT_EQ(paths.next(at(1), 0b1000'0000, kRtt), PathSet::kNone);
}

TEST(PathSet, OneMarkCausesExactlyOneMissedTurn) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    PathSet paths = make({.per_port = 8, .active = 8, .seed = seed});
    take(paths, 8 * 3);
    const auto marked = static_cast<Slot>(seed % 8);
    paths.on_mark(marked);
    paths.on_mark(marked);  // further marks do not add missed turns
    paths.on_mark(marked);
    EXPECT_EQ(paths.state(marked), EvState::kSkip);
    // The cycle with the missed turn has seven EVs. In every later cycle the EV has its turn.
    const auto without = take(paths, 7);
    EXPECT_EQ(std::count(without.begin(), without.end(), marked), 0);
    for (int cycle = 0; cycle < 5; ++cycle) {
      const auto slots = take(paths, 8);
      EXPECT_EQ(std::count(slots.begin(), slots.end(), marked), 1) << cycle;
    }
  }
}

TEST(PathSet, SendingNeverStallsWhenAllEvsAreMarked) {
  for (std::uint32_t count : {1u, 2u, 8u}) {
    PathSet paths = make({.ports = 2, .per_port = count, .active = 2 * count});
    for (int round = 0; round < 200; ++round) {
      for (Slot slot = 0; slot < 2 * count; ++slot) paths.on_mark(slot);
      EXPECT_NE(paths.next(at(1), kAll, kRtt), PathSet::kNone);
    }
  }
}

TEST(PathSet, CondemnedEvIsReplacedByABackupOfItsPlaneAndNeverUsed) {
  PathSet paths = make({.ports = 2, .per_port = 6, .active = 8, .min_active = 1});
  const auto used = take(paths, 8);
  EXPECT_EQ(paths.active(), 8u);
  // Condemns the EVs of plane 1 one by one, until its backups are used up.
  std::set<Slot> bad;
  for (int i = 0; i < 2; ++i) {
    Slot victim = PathSet::kNone;
    for (Slot slot : take(paths, 8)) {
      if (paths.ev(slot).port == 1) victim = slot;
    }
    ASSERT_TRUE(paths.condemn(at(1), victim));
    EXPECT_FALSE(paths.condemn(at(1), victim));
    bad.insert(victim);
    EXPECT_EQ(paths.active(), 8u);
    std::map<PortIndex, std::set<Slot>> seen;
    for (Slot slot : take(paths, 64)) {
      EXPECT_FALSE(bad.contains(slot));
      seen[paths.ev(slot).port].insert(slot);
    }
    EXPECT_EQ(seen[0].size(), 4u);
    EXPECT_EQ(seen[1].size(), 4u);
  }
  EXPECT_EQ(paths.bad(), 2u);
  // No backup is left: the plane continues with fewer EVs, and its share of packets stays.
  const Slot third = paths.any_on(1, 0);
  ASSERT_TRUE(paths.condemn(at(1), third));
  EXPECT_EQ(paths.active(), 7u);
  int on_plane_1 = 0;
  for (Slot slot : take(paths, 70)) on_plane_1 += paths.ev(slot).port == 1;
  EXPECT_EQ(on_plane_1, 35);
}

TEST(PathSet, MarkedBackupRemainsABackup) {
  PathSet paths = make({.per_port = 5, .active = 4, .min_active = 1});
  const auto cycle = take(paths, 4);
  Slot backup = 0;
  while (std::count(cycle.begin(), cycle.end(), backup) > 0) ++backup;
  paths.on_mark(backup);  // a late mark, of a packet from an earlier turn
  ASSERT_TRUE(paths.condemn(at(1), cycle[0]));
  EXPECT_EQ(paths.active(), 4u);
}

TEST(PathSet, RevivedEvIsUsedAgain) {
  PathSet paths = make({.per_port = 4, .active = 4, .min_active = 1});
  ASSERT_TRUE(paths.condemn(at(1), 2));
  EXPECT_EQ(paths.active(), 3u);
  paths.revive(at(2), 2);
  EXPECT_EQ(paths.active(), 4u);
  EXPECT_EQ(paths.active_min(), 3u);
  EXPECT_EQ(paths.state(2), EvState::kGood);
  EXPECT_EQ(paths.bad(), 0u);
  const auto slots = take(paths, 8);
  EXPECT_GE(std::count(slots.begin(), slots.end(), 2), 1);
}

TEST(PathSet, RevivedEvIsABackupWhileItsReplacementIsInRotation) {
  PathSet paths = make({.per_port = 5, .active = 4, .min_active = 1});
  const Slot victim = take(paths, 1)[0];
  ASSERT_TRUE(paths.condemn(at(1), victim));
  paths.revive(at(2), victim);
  EXPECT_EQ(paths.active(), 4u);
  for (Slot slot : take(paths, 16)) EXPECT_NE(slot, victim);
  // The revived EV is the next backup to be used.
  const Slot other = take(paths, 1)[0];
  ASSERT_TRUE(paths.condemn(at(3), other));
  const auto slots = take(paths, 16);
  EXPECT_GT(std::count(slots.begin(), slots.end(), victim), 0);
}

TEST(PathSet, DeniedEvIsNeverUsedUntilItIsAllowed) {
  for (Policy policy : {Policy::kMrc, Policy::kOblivious, Policy::kReps, Policy::kFlowHash}) {
    SCOPED_TRACE(static_cast<int>(policy));
    PathSet paths = make({.per_port = 4, .active = 4, .min_active = 4, .policy = policy});
    for (Slot slot : {Slot{0}, Slot{1}}) {
      paths.on_clean_echo(slot);
      paths.deny(at(1), slot, true);
      EXPECT_EQ(paths.state(slot), EvState::kDenied);
    }
    paths.revive(at(2), 0);
    paths.revive_plane(at(2), 0);
    paths.on_mark(0);
    paths.on_clean_echo(0);
    EXPECT_FALSE(paths.condemn(at(2), 0));
    paths.on_loss(at(2), 0);
    paths.on_lost_packet_arrived(at(2), 0);
    for (Slot slot : take(paths, 64)) EXPECT_GE(slot, 2);
    paths.deny(at(3), 0, false);
    EXPECT_EQ(paths.state(0), EvState::kGood);
    const auto slots = take(paths, 64);
    EXPECT_GT(std::count(slots.begin(), slots.end(), 0), 0);
  }
}

TEST(PathSet, DeniedEvNeverReplacesACondemnedOne) {
  PathSet paths = make({.per_port = 5, .active = 4, .min_active = 1});
  for (Slot slot = 0; slot < 5; ++slot) {
    const auto used = take(paths, 8);
    if (std::count(used.begin(), used.end(), slot) == 0) paths.deny(at(1), slot, true);
  }
  ASSERT_TRUE(paths.condemn(at(2), take(paths, 1)[0]));
  EXPECT_EQ(paths.active(), 3u);
  for (Slot slot : take(paths, 32)) EXPECT_EQ(paths.state(slot), EvState::kGood);
}

TEST(PathSet, ObliviousPolicyIgnoresMarks) {
  PathSet paths = make({.policy = Policy::kOblivious});
  for (Slot slot = 0; slot < 4; ++slot) paths.on_mark(slot);
  const auto slots = take(paths, 8);
  EXPECT_EQ(std::set<Slot>(slots.begin(), slots.end()).size(), 8u);
}

TEST(PathSet, FlowHashPolicyStaysOnOneEv) {
  PathSet paths = make({.ports = 2, .policy = Policy::kFlowHash});
  for (Slot slot : take(paths, 50)) EXPECT_EQ(slot, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(paths.on_loss(at(1), 0), Verdict::kNothing);
  paths.on_mark(0);
  EXPECT_EQ(paths.next(at(1), kAll, kRtt), 0);
  EXPECT_EQ(paths.next(at(1), 0b10, kRtt), PathSet::kNone);  // the EV's port has no room
}

TEST(PathSet, RepsPolicyReusesCleanEvsOldestFirst) {
  PathSet paths = make({.per_port = 32, .active = 32, .policy = Policy::kReps});
  for (Slot slot : {Slot{9}, Slot{4}, Slot{30}}) paths.on_clean_echo(slot);
  EXPECT_EQ(take(paths, 3), (std::vector<Slot>{9, 4, 30}));
  // After that it explores new EVs. It remembers at most eight clean ones.
  take(paths, 32);
  for (Slot slot = 0; slot < 12; ++slot) paths.on_clean_echo(slot);
  EXPECT_EQ(take(paths, 8), (std::vector<Slot>{0, 1, 2, 3, 4, 5, 6, 7}));
  // A clean EV that was condemned meanwhile is not reused.
  paths.on_clean_echo(3);
  paths.on_clean_echo(5);
  ASSERT_TRUE(paths.condemn(at(1), 3));
  EXPECT_EQ(paths.next(at(1), kAll, kRtt), 5);
}

TEST(PathSet, SlotIsFoundByItsEvAndByItsPort) {
  PathSet paths = make({.ports = 2, .per_port = 4, .active = 8});
  for (Slot slot = 0; slot < 8; ++slot) {
    EXPECT_EQ(paths.find(paths.ev(slot)), slot);
    EXPECT_EQ(paths.find_echo(paths.ev(slot).value), slot);
  }
  EXPECT_EQ(paths.find({.value = 1, .port = 1}), PathSet::kNone);
  EXPECT_EQ(paths.find_echo(0xdead'beef), PathSet::kNone);
  for (std::uint32_t draw = 0; draw < 20; ++draw) {
    EXPECT_EQ(paths.ev(paths.any_on(0, draw)).port, 0);
    EXPECT_EQ(paths.ev(paths.any_on(1, draw)).port, 1);
    EXPECT_EQ(paths.any_on(2, draw), PathSet::kNone);
  }
}

// STEV values do not contain the plane: an echoed value that two planes share names no EV.
TEST(PathSet, EchoedValueThatTwoPlanesShareNamesNoSlot) {
  const fabric::Ev evs[] = {
      {.value = 5, .port = 0}, {.value = 5, .port = 1}, {.value = 6, .port = 1}};
  PathSet paths({.active = 3, .min_active = 1, .port_count = 2}, evs);
  EXPECT_EQ(paths.find(evs[1]), 1);
  EXPECT_EQ(paths.find_echo(5), PathSet::kNone);
  EXPECT_EQ(paths.find_echo(6), 2);
}

TEST(PathSet, EveryChangeOfStateIsTraced) {
  Trace trace;
  PathSet paths({.active = 2, .min_active = 1, .trace = &trace, .host = 7, .qpn = 9},
                make_evs({.ports = 1, .per_port = 2}));
  paths.condemn(at(1), 0);
  paths.revive(at(2), 0);
  paths.deny(at(3), 1, true);
  ASSERT_GE(trace.records().size(), 3u);
  EXPECT_EQ(trace.records()[0].kind, TraceKind::kEv);
  EXPECT_EQ(trace.records()[0].host, 7u);
  EXPECT_EQ(trace.records()[0].qpn, 9u);
  EXPECT_EQ(trace.records()[0].ev, paths.ev(0).value);
  EXPECT_EQ(trace.records()[0].a, static_cast<std::uint64_t>(EvTraceState::kAssumedBad));
  EXPECT_EQ(trace.records()[1].a, static_cast<std::uint64_t>(EvTraceState::kGood));
  EXPECT_EQ(trace.records().back().a, static_cast<std::uint64_t>(EvTraceState::kDenied));
}

}  // namespace
}  // namespace weft::transport
