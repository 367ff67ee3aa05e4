#include "scenario/faults.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "scenario/testing.h"

namespace weft::scenario {
namespace {

using fabric::FaultAction;
using fabric::FaultEvent;

constexpr const char* kWorkload = "[workload]\nkind = \"permutation\"\nbytes = 1\n";

FaultPlan planned(std::string_view faults) {
  const Scenario scenario = small_scenario(kWorkload + std::string(faults));
  const std::uint32_t evs[] = {100, 101, 102, 103};
  return make_fault_plan(scenario.faults, topology_of(scenario), evs);
}

Time at_us(std::int64_t us) { return Time::from_start(Duration::us(us)); }

TEST(Faults, LinkGoesDownAndUpInBothDirections) {
  const FaultPlan plan = planned(
      "[[fault]]\nkind = \"link-down\"\nwhere = \"host-link\"\nhost = 3\nplane = 1\nfrom = "
      "\"5us\"\n"
      "until = \"9us\"\n");
  const auto topology = topology_of(small_scenario(kWorkload));
  ASSERT_EQ(plan.events.size(), 4u);
  EXPECT_EQ(plan.events[0].action, FaultAction::kLinkDown);
  EXPECT_EQ(plan.events[0].link, topology.host_up(1, 3));
  EXPECT_FALSE(plan.events[0].carrier) << "the host cannot see that its light does not arrive";
  EXPECT_EQ(plan.events[1].link, topology.host_down(1, 3));
  EXPECT_TRUE(plan.events[1].carrier);
  EXPECT_EQ(plan.events[2].at, at_us(9));
  EXPECT_EQ(plan.events[2].action, FaultAction::kLinkUp);
  EXPECT_TRUE(plan.events[3].carrier);
  EXPECT_EQ(plan.healed_at, at_us(9));
}

TEST(Faults, SilentFaultKeepsTheCarrierAndMayAffectOneDirection) {
  const FaultPlan silent =
      planned("[[fault]]\nkind = \"plane-down\"\nplane = 0\nsilent = true\nuntil = \"1us\"\n");
  EXPECT_EQ(silent.events.size(), 2u * 2 * 16);
  for (const FaultEvent& event : silent.events) EXPECT_FALSE(event.carrier);
  const FaultPlan up = planned(
      "[[fault]]\nkind = \"link-down\"\nwhere = \"t0-t1\"\ndirection = \"up\"\nt0 = 1\nt1 = 2\n");
  ASSERT_EQ(up.events.size(), 1u);
  EXPECT_EQ(up.events[0].link, topology_of(small_scenario(kWorkload)).t0_up(0, 1, 2));
  EXPECT_EQ(up.healed_at, kNever) << "it lasts";
}

TEST(Faults, SwitchDownTakesDownAllLinksOfTheSwitch) {
  const FaultPlan t0 = planned("[[fault]]\nkind = \"switch-down\"\ntier = \"t0\"\nswitch = 2\n");
  EXPECT_EQ(t0.events.size(), 2u * (4 + 4));
  int carriers = 0;
  for (const FaultEvent& event : t0.events) carriers += event.carrier ? 1 : 0;
  EXPECT_EQ(carriers, 4) << "its hosts see it";
  EXPECT_EQ(planned("[[fault]]\nkind = \"switch-down\"\ntier = \"t1\"\nswitch = 0\n").events.size(),
            2u * 4);
}

TEST(Faults, CountAndSpacingMakeConsecutiveFaults) {
  const FaultPlan plan = planned(
      "[[fault]]\nkind = \"link-down\"\nwhere = \"t0-t1\"\ndirection = \"up\"\nt0 = 0\nt1 = 3\n"
      "count = 3\nspacing = \"10us\"\nfrom = \"1us\"\n");
  const auto topology = topology_of(small_scenario(kWorkload));
  ASSERT_EQ(plan.events.size(), 3u);
  EXPECT_EQ(plan.events[0].link, topology.t0_up(0, 0, 3));
  EXPECT_EQ(plan.events[1].link, topology.t0_up(0, 1, 0)) << "then the next T0's";
  EXPECT_EQ(plan.events[1].at, at_us(11));
  EXPECT_EQ(plan.events[2].link, topology.t0_up(0, 1, 1));
}

TEST(Faults, FlapGoesDownAndUpEveryPeriod) {
  const FaultPlan plan = planned(
      "[[fault]]\nkind = \"link-flap\"\nwhere = \"host-link\"\ndirection = \"down\"\nhost = 0\n"
      "period = \"4us\"\nfrom = \"10us\"\nuntil = \"19us\"\n");
  ASSERT_EQ(plan.events.size(), 6u);
  const std::int64_t times[] = {10, 12, 14, 16, 18, 19};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(plan.events[static_cast<std::size_t>(i)].at, at_us(times[i]));
    EXPECT_EQ(plan.events[static_cast<std::size_t>(i)].action,
              i % 2 == 0 ? FaultAction::kLinkDown : FaultAction::kLinkUp);
  }
}

TEST(Faults, OverlappingOutagesOfALinkAreOneOutage) {
  const std::string link = "where = \"host-link\"\ndirection = \"down\"\nhost = 0\n";
  const FaultPlan plan =
      planned("[[fault]]\nkind = \"link-down\"\nsilent = true\n" + link +
              "from = \"1us\"\nuntil = \"5us\"\n" + "[[fault]]\nkind = \"link-down\"\n" + link +
              "from = \"3us\"\nuntil = \"8us\"\n" + "[[fault]]\nkind = \"link-down\"\n" + link +
              "from = \"8us\"\nuntil = \"9us\"\n");
  ASSERT_EQ(plan.events.size(), 3u);
  EXPECT_FALSE(plan.events[0].carrier);
  EXPECT_EQ(plan.events[1].at, at_us(3));
  EXPECT_TRUE(plan.events[1].carrier) << "now the host sees it";
  EXPECT_EQ(plan.events[2].at, at_us(9));
  EXPECT_EQ(plan.events[2].action, FaultAction::kLinkUp);
  EXPECT_TRUE(plan.events[2].carrier);
}

TEST(Faults, SlowestRateOfOverlappingFaultsCounts) {
  const std::string link = "kind = \"link-slow\"\nwhere = \"t0-t1\"\ndirection = \"up\"\n";
  const FaultPlan plan = planned("[[fault]]\n" + link +
                                 "rate = \"50%\"\nfrom = \"1us\"\nuntil = \"9us\"\n[[fault]]\n" +
                                 link + "rate = \"25%\"\nfrom = \"3us\"\nuntil = \"5us\"\n");
  ASSERT_EQ(plan.events.size(), 4u);
  const std::uint32_t percents[] = {50, 25, 50, 100};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(plan.events[i].percent, percents[i]);
}

TEST(Faults, EachImpairmentHasItsOwnIdAndEndsOnce) {
  const FaultPlan plan = planned(
      "[[fault]]\nkind = \"loss\"\nshare = \"1%\"\nwhere = \"host-link\"\nhost = 1\nuntil = "
      "\"2us\"\n"
      "[[fault]]\nkind = \"ev-loss\"\nshare = \"20%\"\nevs = [2, 0]\n"
      "[[fault]]\nkind = \"control-loss\"\ncontrol = \"first-nak\"\n");
  ASSERT_EQ(plan.events.size(), 5u);
  EXPECT_EQ(plan.events[0].id, plan.events[1].id);
  EXPECT_EQ(plan.events[0].impairment.share_of_2_32, chance_from_ppm(10'000));
  EXPECT_EQ(plan.events[2].impairment.entropies, (std::vector<std::uint32_t>{102, 100}));
  EXPECT_EQ(plan.events[2].place, fabric::FaultPlace::kNicReceive);
  EXPECT_EQ(plan.events[3].impairment.kind, fabric::ImpairmentKind::kFirstNak);
  EXPECT_EQ(plan.events[4].action, FaultAction::kHeal);
  EXPECT_EQ(plan.events[4].id, plan.events[0].id);
  EXPECT_EQ(
      std::set<std::uint32_t>({plan.events[0].id, plan.events[2].id, plan.events[3].id}).size(),
      3u);
}

TEST(Faults, PausesEndAndCrashesDoNot) {
  const FaultPlan plan = planned(
      "[[fault]]\nkind = \"host-pause\"\nhost = 2\ncount = 2\nfrom = \"1us\"\nuntil = \"4us\"\n"
      "[[fault]]\nkind = \"host-crash\"\nhost = 5\nfrom = \"2us\"\n");
  ASSERT_EQ(plan.events.size(), 5u);
  EXPECT_EQ(plan.events[1].host, 3u);
  EXPECT_EQ(plan.events[2].action, FaultAction::kCrash);
  EXPECT_EQ(plan.events[4].action, FaultAction::kResume);
  EXPECT_EQ(plan.healed_at, at_us(4)) << "a crash does not count";
}

// Must be true for every draw: each fault except a crash ends, everything that went down comes up,
// and only existing hosts, links and switches are named.
TEST(Faults, RandomFaultsDependOnTheSeedAndAllButCrashesEnd) {
  const Scenario scenario = small_scenario(
      kWorkload +
      std::string("[random_faults]\ncount_max = 6\nwindow = \"400us\"\nduration_max = \"2ms\"\n"
                  "kinds = [\"loss\", \"burst-loss\", \"reorder\", \"duplicate\", \"corrupt\", "
                  "\"link-down\", \"link-flap\", \"link-slow\", \"plane-down\", \"switch-down\", "
                  "\"host-pause\", \"host-crash\", \"ev-loss\", \"control-loss\"]\n"));
  const auto topology = topology_of(scenario);
  std::set<FaultKind> kinds;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const auto faults =
        draw_faults(scenario.random_faults, topology, scenario.transport, Prng(seed));
    int crashes = 0;
    for (const FaultSpec& fault : faults) {
      kinds.insert(fault.kind);
      crashes += fault.kind == FaultKind::kHostCrash ? 1 : 0;
      EXPECT_EQ(fault.until.has_value(), fault.kind != FaultKind::kHostCrash) << "seed " << seed;
      EXPECT_LE(fault.from, Duration::us(400));
      EXPECT_FALSE(describe(fault).empty());
    }
    EXPECT_LE(crashes, 1);
    const FaultPlan plan = make_fault_plan(faults, topology, {});
    EXPECT_LE(plan.healed_at, at_us(2400)) << "seed " << seed;
    std::map<fabric::LinkId, int> down;
    std::map<fabric::LinkId, std::uint32_t> rate;
    Time last;
    for (const FaultEvent& event : plan.events) {
      EXPECT_LE(last, event.at);
      last = event.at;
      if (event.action == FaultAction::kLinkDown) down[event.link] = 1;
      if (event.action == FaultAction::kLinkUp) --down[event.link];
      if (event.action == FaultAction::kLinkRate) rate[event.link] = event.percent;
    }
    for (const auto& [link, n] : down) EXPECT_EQ(n, 0) << "seed " << seed << " link " << link;
    for (const auto& [link, percent] : rate) EXPECT_EQ(percent, 100u) << "seed " << seed;
    const auto again =
        draw_faults(scenario.random_faults, topology, scenario.transport, Prng(seed));
    ASSERT_EQ(again.size(), faults.size());
    for (std::size_t i = 0; i < faults.size(); ++i)
      EXPECT_EQ(describe(again[i]), describe(faults[i]));
  }
  EXPECT_EQ(kinds.size(), 14u);
}

TEST(Faults, EveryKindOfFaultHasADescription) {
  const Scenario scenario = small_scenario(
      kWorkload +
      std::string("[[fault]]\nkind = \"link-down\"\nwhere = \"host-link\"\nhost = 3\nplane = 1\n"
                  "from = \"300us\"\nuntil = \"1ms\"\n"
                  "[[fault]]\nkind = \"loss\"\nshare = \"0.1%\"\n"));
  EXPECT_EQ(describe(scenario.faults[0]),
            "link-down on host 3's link in plane 1, 300 us to 1000 us");
  EXPECT_EQ(describe(scenario.faults[1]), "loss at every receiving NIC, 0.1 %, 0 us on");
}

}  // namespace
}  // namespace weft::scenario
