// How losses condemn EVs and planes: relative to the QP's other EVs, down to ev_min_active.
// docs/decisions/0003.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/prng.h"
#include "transport/path_set.h"
#include "transport/test_memory.h"

namespace weft::transport {
namespace {

using test::make_evs;
using Slot = PathSet::Slot;

constexpr Duration kRtt = Duration::us(10);
constexpr PortMask kAll = 0xff;

// Sends packets one by one, each lost or not, and reports them in order.
struct Trial {
  std::uint32_t ports = 4, per_port = 40, active = 128, min_active = 32;
  Condemn condemn = Condemn::kRelative;
  Policy policy = Policy::kMrc;
  std::uint64_t seed = 1;
};
class Path {
 public:
  explicit Path(const Trial& t)
      : paths({.policy = t.policy,
               .condemn = t.condemn,
               .active = t.active,
               .min_active = t.min_active,
               .port_count = t.ports,
               .seed = t.seed},
              make_evs({.ports = t.ports, .per_port = t.per_port})),
        prng(Prng(t.seed).fork("loss")) {}

  // Sends one packet. `chance_of(slot)`: chance of a loss in parts per million. Returns the slot
  // used.
  template <typename ChanceOf>
  Slot send(ChanceOf chance_of) {
    now += Duration::ns(100);
    const Slot slot = paths.next(now, kAll, kRtt);
    if (prng.chance(chance_from_ppm(chance_of(slot)))) {
      const Verdict verdict = paths.on_loss(now, slot);
      condemned += verdict == Verdict::kEvCondemned;
      planes += verdict == Verdict::kPlaneCondemned;
    } else {
      paths.on_ack(slot);
    }
    ++sent;
    return slot;
  }

  PathSet paths;
  Prng prng;
  Time now;
  std::uint32_t condemned = 0, planes = 0, sent = 0;
};

TEST(PathSetLoss, UniformLossNeverReducesTheEvsToTheMinimum) {
  for (std::uint32_t ppm : {1'000u, 10'000u, 50'000u}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(testing::Message() << ppm << " ppm, seed " << seed);
      Path path({.seed = seed});
      for (int i = 0; i < 400'000; ++i) path.send([&](Slot) { return ppm; });
      // Nothing revives EVs here: an EV that was wrongly condemned stays condemned.
      EXPECT_GT(path.paths.active_min(), 32u);
      EXPECT_LE(path.condemned, 8u);
      EXPECT_EQ(path.planes, 0u);
    }
  }
}

TEST(PathSetLoss, OneLossyEvIsCondemnedSoon) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    // 16 paths, two per plane, as in figure 12 of the MRC paper, and one backup per plane.
    Path path({.ports = 8, .per_port = 3, .active = 16, .min_active = 4, .seed = seed});
    const Slot bad = path.paths.any_on(3, 0);
    const auto chance = [&](Slot slot) { return slot == bad ? 200'000u : 0u; };
    while (path.paths.state(bad) != EvState::kAssumedBad && path.sent < 2000) path.send(chance);
    EXPECT_LT(path.sent, 1000u);
    EXPECT_EQ(path.condemned, 1u);
    for (int i = 0; i < 1000; ++i) EXPECT_NE(path.send(chance), bad);
  }
}

TEST(PathSetLoss, LossyEvIsCondemnedUnderUniformLoss) {
  std::uint64_t sum = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Path path({.ports = 4, .per_port = 10, .active = 32, .min_active = 8, .seed = seed});
    const Slot bad = path.paths.any_on(2, 0);
    while (path.paths.state(bad) != EvState::kAssumedBad && path.sent < 20'000) {
      path.send([&](Slot slot) { return slot == bad ? 500'000u : 10'000u; });
    }
    EXPECT_LT(path.sent, 20'000u) << "seed " << seed;
    sum += path.sent;
  }
  EXPECT_LT(sum / 20, 2000u);
}

TEST(PathSetLoss, FirstLossCondemnsAtOnceWithCondemnFirstLoss) {
  Path path({.condemn = Condemn::kFirstLoss});
  const Slot slot = path.paths.next(path.now, kAll, kRtt);
  EXPECT_EQ(path.paths.on_loss(path.now, slot), Verdict::kEvCondemned);
  EXPECT_EQ(path.paths.state(slot), EvState::kAssumedBad);
}

TEST(PathSetLoss, OneLossAloneCondemnsNothing) {
  Path path({});
  const Slot slot = path.paths.next(path.now, kAll, kRtt);
  EXPECT_EQ(path.paths.on_loss(path.now, slot), Verdict::kNothing);
  EXPECT_EQ(path.paths.state(slot), EvState::kGood);
}

TEST(PathSetLoss, LossThatArrivedAfterAllIsWithdrawn) {
  Path path({.ports = 1, .per_port = 8, .active = 8, .min_active = 2});
  path.paths.on_loss(path.now, 3);
  ASSERT_EQ(path.paths.on_loss(path.now, 3), Verdict::kEvCondemned);
  EXPECT_EQ(path.paths.active(), 7u);
  EXPECT_TRUE(path.paths.on_lost_packet_arrived(path.now, 3));
  EXPECT_EQ(path.paths.state(3), EvState::kGood);
  EXPECT_EQ(path.paths.active(), 8u);
  EXPECT_FALSE(path.paths.on_lost_packet_arrived(path.now, 3));
  // The withdrawn loss no longer counts against the EV.
  EXPECT_EQ(path.paths.on_loss(path.now, 3), Verdict::kNothing);
}

TEST(PathSetLoss, WithdrawnLossesDoNotCount) {
  Path path({.ports = 1, .per_port = 8, .active = 8, .min_active = 2});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(path.paths.on_loss(path.now, 3), Verdict::kNothing);
    EXPECT_FALSE(path.paths.on_lost_packet_arrived(path.now, 3));
  }
}

// A software peer reads one port after the other: packets that seem lost often arrive a moment
// later. Only losses that go on condemn an EV or a plane.
TEST(PathSetLoss, BurstOfLossCondemnsNothingWhereLossMustBeConfirmed) {
  const auto make = [] {
    return PathSet({.active = 8, .port_count = 2, .confirm = Duration::ms(1)},
                   make_evs({.ports = 2, .per_port = 4}));
  };
  const auto lose_run = [](PathSet& paths, Time now, Duration late = {}) {
    Verdict worst = Verdict::kNothing;
    for (int i = 0; i < 15; ++i) {
      paths.on_ack(4);  // the other plane delivers
      if (const Verdict v = paths.on_loss(now, 0, late); v != Verdict::kNothing) worst = v;
    }
    return worst;
  };
  const Time start = Time::from_start(Duration::ms(5));
  PathSet paths = make();
  EXPECT_EQ(lose_run(paths, start), Verdict::kNothing);
  EXPECT_EQ(lose_run(paths, start + Duration::us(500)), Verdict::kNothing);
  EXPECT_NE(lose_run(paths, start + Duration::ms(1)), Verdict::kNothing) << "it goes on";
  PathSet again = make();
  for (int turn = 0; turn < 20; ++turn) {
    const Time now = start + Duration::us(900) * turn;
    EXPECT_EQ(lose_run(again, now), Verdict::kNothing) << turn;
    for (int i = 0; i < 15; ++i) again.on_lost_packet_arrived(now, 0);
  }
  // Where packets are known to be late by milliseconds, losses must go on for longer, up to a
  // bound.
  for (const auto& [late, judged_ms] :
       {std::pair{Duration::us(10), 1}, {Duration::ms(4), 4}, {Duration::s(2), 8}}) {
    PathSet slow = make();
    for (int ms = 0; ms < judged_ms; ++ms)
      EXPECT_EQ(lose_run(slow, start + Duration::ms(ms), late), Verdict::kNothing) << ms;
    EXPECT_NE(lose_run(slow, start + Duration::ms(judged_ms), late), Verdict::kNothing);
  }
}

TEST(PathSetLoss, MinimumOfEvsIsKeptWithOnePacketAnRttOnDeadOnes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Path path({.ports = 1, .per_port = 8, .active = 8, .min_active = 4, .seed = seed});
    // Five EVs are dead: four are taken out, and ev_min_active keeps the fifth in rotation.
    const auto dead = [](Slot slot) { return slot < 5 ? 1'000'000u : 0u; };
    for (int i = 0; i < 2000; ++i) path.send(dead);
    EXPECT_EQ(path.paths.active(), 4u);
    EXPECT_EQ(path.paths.bad(), 5u);
    std::map<Slot, int> count;
    const Time start = path.now;
    for (int i = 0; i < 2000; ++i) ++count[path.send(dead)];
    int kept = 0;
    for (Slot slot = 0; slot < 5; ++slot) kept += count[slot];
    const auto rtts = static_cast<int>((path.now - start).us() / 10);
    EXPECT_GE(kept, rtts / 2);
    EXPECT_LE(kept, rtts + 1);
  }
}

TEST(PathSetLoss, DeadEvInRotationGetsOnePacketAnRttWhileAGoodOneIsLeft) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Path path({.ports = 1, .per_port = 2, .active = 2, .min_active = 2, .seed = seed});
    const auto dead = [](Slot slot) { return slot == 0 ? 1'000'000u : 0u; };
    for (int i = 0; i < 100; ++i) path.send(dead);
    ASSERT_TRUE(path.paths.is_condemned(0));
    int kept = 0;
    for (int i = 0; i < 2000; ++i) kept += path.send(dead) == 0;  // for 20 RTTs
    EXPECT_LE(kept, 21);
  }
}

TEST(PathSetLoss, EvThatIsKeptByTheMinimumCountsAsCondemned) {
  Path path({.ports = 1, .per_port = 4, .active = 4, .min_active = 3});
  for (Slot slot : {Slot{0}, Slot{1}}) {
    path.paths.on_loss(path.now, slot);
    // The caller is told, and probes the EV: only probes can revive it.
    EXPECT_EQ(path.paths.on_loss(path.now, slot), Verdict::kEvCondemned) << slot;
    EXPECT_TRUE(path.paths.is_condemned(slot));
  }
  EXPECT_EQ(path.paths.active(), 3u);
  EXPECT_EQ(path.paths.state(1), EvState::kSkip);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(path.paths.on_loss(path.now, 1), Verdict::kNothing);
  path.paths.revive(path.now, 1);
  EXPECT_FALSE(path.paths.is_condemned(1));
  EXPECT_EQ(path.paths.state(1), EvState::kGood);
}

TEST(PathSetLoss, EvsStillSendWhenAllAreKeptOnlyByTheMinimum) {
  Path path({.ports = 1, .per_port = 4, .active = 4, .min_active = 4});
  for (int i = 0; i < 1000; ++i)
    ASSERT_NE(path.send([](Slot) { return 1'000'000u; }), PathSet::kNone);
  EXPECT_EQ(path.paths.active(), 4u);
}

TEST(PathSetLoss, DeadPlaneIsCondemnedWhileOthersDeliver) {
  for (std::uint32_t ports : {2u, 3u, 4u, 8u}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(testing::Message() << ports << " planes, seed " << seed);
      Path path({.ports = ports,
                 .per_port = 16,
                 .active = 16 * ports,
                 .min_active = 4 * ports,
                 .seed = seed});
      for (int i = 0; i < 500; ++i) path.send([](Slot) { return 0u; });
      const std::uint32_t before = path.sent;
      while (path.planes == 0 && path.sent < before + 1000) {
        path.send([&](Slot slot) { return path.paths.ev(slot).port == 1 ? 1'000'000u : 0u; });
      }
      EXPECT_EQ(path.planes, 1u);
      EXPECT_LE(path.sent - before, 40 * ports);
      EXPECT_EQ(path.paths.planes_down(), 0b10);
      EXPECT_EQ(path.paths.active(), 16 * (ports - 1));
      for (int i = 0; i < 100; ++i) {
        EXPECT_NE(path.paths.ev(path.send([](Slot) { return 0u; })).port, 1);
      }
      path.paths.revive_plane(path.now, 1);
      EXPECT_EQ(path.paths.planes_down(), 0);
      bool used = false;
      for (int i = 0; i < 100; ++i)
        used |= path.paths.ev(path.send([](Slot) { return 0u; })).port == 1;
      EXPECT_TRUE(used);
    }
  }
}

TEST(PathSetLoss, NoPlaneIsCondemnedWhileNothingArrives) {
  Path path({.ports = 4, .per_port = 32, .active = 128, .min_active = 64});
  for (int i = 0; i < 500; ++i) path.send([](Slot) { return 1'000'000u; });
  EXPECT_EQ(path.planes, 0u);
  EXPECT_EQ(path.paths.planes_down(), 0);
}

TEST(PathSetLoss, LastPlaneIsNeverCondemned) {
  Path path({.ports = 2, .per_port = 16, .active = 32, .min_active = 2});
  for (int i = 0; i < 200; ++i)
    path.send([&](Slot s) { return path.paths.ev(s).port == 1 ? 1'000'000u : 0u; });
  ASSERT_EQ(path.paths.planes_down(), 0b10);
  for (int i = 0; i < 2000; ++i)
    ASSERT_NE(path.send([](Slot) { return 900'000u; }), PathSet::kNone);
  EXPECT_EQ(path.paths.planes_down(), 0b10);
}

// Random events in any order: next() always returns an allowed EV, the counts agree, and sending
// never stalls.
TEST(PathSetLoss, InvariantsHoldWhateverTheOrderOfEvents) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    const std::uint32_t ports = 1 + prng.below(8), per_port = 1 + prng.below(6);
    const std::uint32_t all = ports * per_port;
    PathSet paths({.policy = static_cast<Policy>(prng.below(3)),
                   .condemn = static_cast<Condemn>(prng.below(2)),
                   .active = 1 + prng.below(all),
                   .min_active = 1,
                   .port_count = ports,
                   .seed = seed},
                  make_evs({.ports = ports, .per_port = per_port}));
    Time now;
    std::uint32_t denied = 0;
    for (int i = 0; i < 5000; ++i) {
      now += Duration::us(1);
      const auto slot = static_cast<Slot>(prng.below(all));
      switch (prng.below(10)) {
        case 0:
          paths.on_mark(slot);
          break;
        case 1:
          paths.on_loss(now, slot);
          break;
        case 2:
          paths.on_lost_packet_arrived(now, slot);
          break;
        case 3:
          paths.condemn(now, slot);
          break;
        case 4:
          paths.revive(now, slot);
          break;
        case 5:
          paths.revive_plane(now, static_cast<PortIndex>(prng.below(ports)));
          break;
        case 6:
          paths.on_clean_echo(slot);
          break;
        case 7:
          if (prng.below(4) == 0) paths.deny(now, slot, prng.below(3) == 0);
          break;
        default:
          paths.on_ack(slot);
      }
      denied = 0;
      for (Slot s = 0; s < all; ++s) denied += paths.state(s) == EvState::kDenied;
      const Slot next = paths.next(now, kAll, kRtt);
      if (next == PathSet::kNone) {
        ASSERT_GT(denied, 0u);  // only the controller can stop a QP completely
        continue;
      }
      ASSERT_NE(paths.state(next), EvState::kDenied);
      ASSERT_NE(paths.state(next), EvState::kAssumedBad);
      ASSERT_EQ(paths.planes_down() >> paths.ev(next).port & 1, 0);
      ASSERT_LE(paths.active(), all);
      ASSERT_GE(paths.active(), paths.active_min());
    }
  }
}

}  // namespace
}  // namespace weft::transport
