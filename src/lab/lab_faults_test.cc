#include "lab/lab_faults.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "fabric/sample_topologies.h"
#include "lab/lab_state.h"
#include "lab/lab_text.h"

namespace weft::lab {
namespace {

using fabric::FaultAction;
using fabric::FaultEvent;
using fabric::FaultPlace;
using fabric::ImpairmentKind;
using fabric::LinkId;

LabPlan small_plan(Rate rate) {
  LabSpec spec;
  spec.topology = fabric::two_tier({.hosts = 4, .planes = 2, .hosts_per_t0 = 2, .t1_count = 2});
  spec.topology.host_rate = spec.topology.fabric_rate = rate;
  return LabPlan::make(spec).value();
}

FaultEvent event(FaultAction action, LinkId link) {
  FaultEvent e;
  e.action = action;
  e.link = link;
  return e;
}

FaultEvent loss(std::uint32_t id, LinkId link, std::uint32_t ppm) {
  FaultEvent e = event(FaultAction::kImpair, link);
  e.id = id;
  e.impairment.share_of_2_32 = chance_from_ppm(ppm);
  return e;
}

class LabFaultsTest : public testing::Test {
 protected:
  void apply(const FaultEvent& e) {
    const auto done = faults_.apply(plan_, e);
    EXPECT_TRUE(done) << done.error().message;
  }
  LabPlan plan_ = small_plan(Rate::gbps(1));
  const fabric::Topology& topology_ = plan_.topology();
  LabFaults faults_;
};

TEST_F(LabFaultsTest, ALinkDownWithCarrierCutsBothDirections) {
  apply(event(FaultAction::kLinkDown, topology_.host_down(1, 2)));
  EXPECT_EQ(faults_.cut, std::set{topology_.host_up(1, 2)});
  apply(event(FaultAction::kLinkUp, topology_.host_down(1, 2)));
  EXPECT_TRUE(faults_.empty());
}

// Where a silent fault and a fault with carrier overlap, a plan has two link-downs but one link-up,
// which must end both.
TEST_F(LabFaultsTest, OneLinkUpEndsBothKindsOfLinkDown) {
  FaultEvent e = event(FaultAction::kLinkDown, topology_.host_down(1, 2));
  e.carrier = false;
  apply(e);
  e.carrier = true;
  apply(e);
  e.action = FaultAction::kLinkUp;
  apply(e);
  EXPECT_TRUE(faults_.empty());
}

TEST_F(LabFaultsTest, ASilentFaultDropsOneDirectionAtItsReceiver) {
  FaultEvent e = event(FaultAction::kLinkDown, topology_.t0_up(0, 1, 0));
  e.carrier = false;
  apply(e);
  const LabNode& t1 = plan_.node({0, fabric::Tier::kT1, 0});
  EXPECT_NE(ruleset(plan_, faults_, t1).find("iifname \"t0-1\" counter drop"), std::string::npos);
  for (const LabNode& node : plan_.nodes()) {
    if (&node == &t1) continue;
    EXPECT_EQ(ruleset(plan_, faults_, node), ruleset(plan_, {}, node)) << node.netns;
  }
  e.action = FaultAction::kLinkUp;
  apply(e);
  EXPECT_TRUE(faults_.empty());
}

TEST_F(LabFaultsTest, ALossHasAShareAndIsEndedByItsId) {
  apply(loss(7, topology_.host_down(0, 3), 10'000));
  apply(loss(7, topology_.host_up(0, 3), 10'000));
  apply(loss(8, topology_.host_down(0, 3), 1));
  const std::string rules = ruleset(plan_, faults_, plan_.nodes()[3]);
  EXPECT_NE(rules.find("iifname \"p1\" numgen random mod 1000000 < 10000 counter drop"),
            std::string::npos)
      << rules;
  EXPECT_NE(rules.find("< 1 counter drop"), std::string::npos) << rules;
  apply(loss(9, topology_.host_down(1, 0), 1'000'000));
  EXPECT_NE(ruleset(plan_, faults_, plan_.nodes()[0]).find("iifname \"p2\" counter drop"),
            std::string::npos);
  FaultEvent heal = event(FaultAction::kHeal, fabric::kNoLink);
  heal.id = 7;
  apply(heal);
  ASSERT_EQ(faults_.losses.size(), 2u);
  EXPECT_EQ(faults_.losses[0].id, 8u);
}

TEST_F(LabFaultsTest, ALossCanApplyToEveryNicOrToEveryLink) {
  FaultEvent e = loss(1, fabric::kNoLink, 1000);
  e.place = FaultPlace::kNicReceive;
  apply(e);
  EXPECT_EQ(faults_.losses.size(), 8u);  // one for each host and plane
  for (const auto& l : faults_.losses) EXPECT_TRUE(topology_.is_last_hop(l.link));
  e.place = FaultPlace::kAllLinks;
  apply(e);
  EXPECT_EQ(faults_.losses.size(), 8u + topology_.link_count());
  for (int i = 0; i < 20; ++i) {
    if (!faults_.apply(plan_, e)) return;
  }
  FAIL() << "losses are not bounded";
}

TEST_F(LabFaultsTest, ARateIsGivenAsAPercentageOrInBitsPerSecond) {
  const LinkId link = topology_.t0_down(1, 0, 1);
  FaultEvent e = event(FaultAction::kLinkRate, link);
  e.percent = 25;
  apply(e);
  EXPECT_EQ(faults_.rates.at(link), Rate::bps(250'000'000));
  EXPECT_NE(rate_line(plan_, faults_, link).find("dev t0-0 root tbf rate 250000000bit"),
            std::string::npos);
  e.percent = 100;
  apply(e);
  EXPECT_TRUE(faults_.empty());
  EXPECT_NE(rate_line(plan_, faults_, link).find("rate 1000000000bit"), std::string::npos);
  EXPECT_FALSE(faults_.set_rate(plan_, link, Rate::gbps(11)));
  const LabPlan fast = small_plan(Rate::gbps(400));
  EXPECT_EQ(rate_line(fast, {}, link), "");
  e.percent = 50;
  EXPECT_FALSE(faults_.apply(fast, e));  // a lab cannot enforce 200 Gb/s either
}

TEST_F(LabFaultsTest, FaultsThatAKernelCannotProduceAreRefused) {
  for (const auto action : {FaultAction::kPause, FaultAction::kResume, FaultAction::kCrash}) {
    const auto done = faults_.apply(plan_, event(action, fabric::kNoLink));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::kUnsupported);
  }
  for (const auto kind :
       {ImpairmentKind::kBurstLoss, ImpairmentKind::kReorder, ImpairmentKind::kDuplicate,
        ImpairmentKind::kCorrupt, ImpairmentKind::kEvLoss, ImpairmentKind::kFirstTransportAck,
        ImpairmentKind::kFirstNak}) {
    FaultEvent e = loss(1, 0, 1000);
    e.impairment.kind = kind;
    const auto done = faults_.apply(plan_, e);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::kUnsupported);
  }
  EXPECT_FALSE(faults_.apply(plan_, event(FaultAction::kLinkDown, topology_.link_count())));
  EXPECT_TRUE(faults_.empty());
}

TEST_F(LabFaultsTest, HealingALinkEndsAllItsFaults) {
  const LinkId link = topology_.host_down(0, 1);
  apply(event(FaultAction::kLinkDown, link));
  FaultEvent e = event(FaultAction::kLinkDown, link);
  e.carrier = false;
  apply(e);
  apply(loss(3, link, 5));
  apply(loss(3, topology_.reverse(link), 5));
  ASSERT_TRUE(faults_.set_rate(plan_, link, Rate::bps(5'000'000)));
  faults_.heal(plan_, link);
  ASSERT_EQ(faults_.losses.size(), 1u);
  faults_.heal(plan_, topology_.reverse(link));
  EXPECT_TRUE(faults_.empty());
}

TEST_F(LabFaultsTest, ALinkThatIsSetUpGetsItsNeighbourAndRoutesBack) {
  const std::string batch = restore_batch(plan_, topology_.t0_down(0, 1, 0));
  EXPECT_NE(batch.find("neigh replace fe80::1"), std::string::npos) << batch;
  EXPECT_NE(batch.find("route replace fd00:1:2::/48 via fe80::1 dev t0-1"), std::string::npos)
      << batch;
  EXPECT_NE(batch.find("route replace fd00:1::4/128 via fe80::1 dev t0-1"), std::string::npos);
  EXPECT_EQ(batch.find("dev t0-0"), std::string::npos) << batch;
}

TEST_F(LabFaultsTest, TheStateFileKeepsAllFaults) {
  apply(event(FaultAction::kLinkDown, topology_.host_down(1, 2)));
  FaultEvent e = event(FaultAction::kLinkDown, 5);
  e.carrier = false;
  apply(e);
  apply(loss(9, 4, 20'000));
  ASSERT_TRUE(faults_.set_rate(plan_, 3, Rate::bps(7'000'000)));
  LabState state{.spec = plan_.spec(), .keeper = LabKeeper{12, 3456}, .complete = true};
  state.faults = faults_;
  state.spec.offloads = false;
  const std::string text = to_text(state);
  const auto read = lab_state_from(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, state);
  EXPECT_FALSE(lab_state_from("nonsense"));
  EXPECT_FALSE(lab_state_from(text + "silent 100000\n"));
  EXPECT_FALSE(lab_state_from(text + "unknown 1\n"));
  EXPECT_FALSE(lab_state_from(text + "hosts 99999999999\n"));
  EXPECT_FALSE(lab_state_from(text + "name ../x\n"));
  for (std::size_t size = 0; size < text.size(); ++size) {
    // The text may be cut off at any size: parsing gives a valid state or an error.
    const auto part = lab_state_from(text.substr(0, size));
    EXPECT_TRUE(!part || LabPlan::make(part->spec).has_value());
  }
}

}  // namespace
}  // namespace weft::lab
