// A lab with the software switch, as values: its plan, the requests to the switch when faults begin
// and end, and its state file.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lab/lab_state.h"
#include "lab/lab_text.h"
#include "softswitch/fault_text.h"
#include "softswitch/test_live_fabric.h"

namespace weft::lab {
namespace {

using fabric::FaultAction;
using fabric::LinkId;

LabSpec software_spec() {
  LabSpec spec;
  spec.switches = LabSwitches::kSoftware;
  spec.topology = {.shape = fabric::Shape::kTwoTier,
                   .hosts = 4,
                   .planes = 2,
                   .hosts_per_t0 = 2,
                   .t1_count = 2,
                   .host_rate = Rate::gbps(1),
                   .fabric_rate = Rate::gbps(1)};
  return spec;
}

LabPlan plan() { return LabPlan::make(software_spec()).value(); }

void apply(LabFaults& faults, const fabric::FaultEvent& event) {
  ASSERT_TRUE(faults.apply(plan(), event).has_value());
}

TEST(LabSwitch, OneNamespaceHasTheOtherEndOfEveryHostsLink) {
  const LabPlan p = plan();
  ASSERT_EQ(p.nodes().size(), 5u);
  const LabNode& node = p.nodes().back();
  EXPECT_TRUE(node.software);
  EXPECT_EQ(node.netns, "weft.lab.switch");
  ASSERT_EQ(node.interfaces.size(), 8u);
  EXPECT_TRUE(node.addresses.empty() && node.routes.empty());
  for (std::uint32_t plane = 0; plane < 2; ++plane) {
    for (fabric::HostIndex host = 0; host < 4; ++host) {
      const LinkId down = p.topology().host_down(plane, host);
      EXPECT_EQ(p.interface(down), "h" + std::to_string(host) + "p" + std::to_string(plane + 1));
      EXPECT_EQ(&p.sender(down), &node);
    }
  }
  EXPECT_TRUE(p.interface(p.topology().t0_up(0, 0, 1)).empty());
  const std::string wires = wire_batch(p);
  EXPECT_EQ(std::count(wires.begin(), wires.end(), '\n'), 8);
  EXPECT_TRUE(rate_batch(p, {}, p.nodes().front()).empty()) << "the switch keeps the rates";
}

TEST(LabSwitch, ASpecWithoutRatesOrWithLargePacketsIsRefused) {
  LabSpec no_rate = software_spec();
  no_rate.topology.fabric_rate = {};
  EXPECT_FALSE(LabPlan::make(no_rate));
  LabSpec large = software_spec();
  large.mtu = 9'201;
  EXPECT_FALSE(LabPlan::make(large));
}

TEST(LabSwitch, RequestsChangeOneSetOfFaultsIntoAnother) {
  const LabPlan p = plan();
  const LinkId up = p.topology().host_up(0, 3), down = p.topology().reverse(up);
  LabFaults sound, cut, both, silent;
  apply(cut, {.action = FaultAction::kLinkDown, .link = down});
  both = cut;
  apply(both, {.action = FaultAction::kLinkDown, .link = down, .carrier = false});
  apply(silent, {.action = FaultAction::kLinkDown, .link = down, .carrier = false});
  const auto line = [](const char* what, LinkId link, int carrier) {
    return std::string("fault ") + what + " link=" + std::to_string(link) +
           " carrier=" + std::to_string(carrier);
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(switch_requests(p, sound, sound), Lines());
  EXPECT_EQ(switch_requests(p, sound, cut),
            (Lines{line("link-down", up, 1), line("link-down", down, 1)}));
  EXPECT_EQ(switch_requests(p, cut, sound),
            (Lines{line("link-up", up, 1), line("link-up", down, 1)}));
  EXPECT_EQ(switch_requests(p, both, silent),
            (Lines{line("link-up", up, 1), line("link-down", down, 0)}))
      << "it is silent all the while";
  EXPECT_EQ(switch_requests(p, silent, both),
            (Lines{line("link-down", up, 1), line("link-down", down, 1)}));

  LabFaults slow;
  apply(slow, {.action = FaultAction::kLinkRate, .link = up, .percent = 25});
  EXPECT_EQ(switch_requests(p, sound, slow),
            (Lines{"rate link=" + std::to_string(up) + " bps=250000000"}));
  EXPECT_EQ(switch_requests(p, slow, sound),
            (Lines{"rate link=" + std::to_string(up) + " bps=1000000000"}));

  LabFaults lossy;
  fabric::FaultEvent loss{.action = FaultAction::kImpair, .id = 70, .link = up};
  loss.impairment.share_of_2_32 = 1u << 31;
  apply(lossy, loss);
  fabric::FaultEvent twice{
      .action = FaultAction::kImpair, .id = 71, .place = fabric::FaultPlace::kAllLinks};
  twice.impairment.kind = fabric::ImpairmentKind::kDuplicate;
  apply(lossy, twice);
  const Lines started = switch_requests(p, sound, lossy);
  ASSERT_EQ(started.size(), 2u);
  for (const std::string& request : started)
    EXPECT_TRUE(softswitch::parse_fault_event(request.substr(6)).has_value()) << request;
  EXPECT_EQ(switch_requests(p, lossy, sound), (Lines{"fault heal id=0", "fault heal id=1"}));
  apply(lossy, {.action = FaultAction::kHeal, .id = 71});
  EXPECT_TRUE(lossy.impairments.empty());
  EXPECT_EQ(lossy.losses.size(), 1u);
}

// The requests of switch_requests_from_unknown_state() set the state of every link, whatever the switch did
// before: it may have faults that were healed since, and impairments of unknown ids.
TEST(LabSwitch, AllRequestsTogetherSetTheStateWhateverItWasBefore) {
  const LabPlan p = plan();
  const Time now{};
  softswitch::LiveFabric fabric(softswitch::config_of(p.topology().spec()));
  const auto tell = [&](const std::vector<std::string>& requests) {
    std::set<std::string> rates;
    for (const std::string& request : requests) {
      if (request == "heal") fabric.end_impairments(now);
      if (request.starts_with("rate ")) rates.insert(request);
      if (!request.starts_with("fault ")) continue;
      const auto event = softswitch::parse_fault_event(request.substr(6));
      ASSERT_TRUE(event && fabric.apply(now, *event)) << request;
    }
    EXPECT_EQ(rates.size(), p.topology().link_count());
  };
  for (LinkId link = 0; link < p.topology().link_count(); ++link) {
    ASSERT_TRUE(fabric.apply(now, {.action = FaultAction::kLinkDown, .link = link}));
    ASSERT_TRUE(
        fabric.apply(now, {.action = FaultAction::kImpair, .id = 900 + link, .link = link}));
  }
  LabFaults left;
  const LinkId silent = p.topology().host_down(1, 2), cut = p.topology().t0_up(0, 0, 1);
  apply(left, {.action = FaultAction::kLinkDown, .link = silent, .carrier = false});
  apply(left, {.action = FaultAction::kLinkDown, .link = cut});
  apply(left, {.action = FaultAction::kImpair, .id = 70, .link = silent});
  apply(left, {.action = FaultAction::kLinkRate, .link = cut, .percent = 25});
  const auto requests = switch_requests_from_unknown_state(p, left);
  tell(requests);
  for (LinkId link = 0; link < p.topology().link_count(); ++link)
    EXPECT_EQ(fabric.is_up(link), link != silent && p.upward(link) != cut) << link;
  EXPECT_EQ(fabric.impairment_count(), 1u);
  const auto asks_for = [&](const std::string& line) {
    return std::count(requests.begin(), requests.end(), line);
  };
  EXPECT_EQ(asks_for(fmt::format("rate link={} bps=250000000", cut)), 1);
  EXPECT_EQ(asks_for(fmt::format("rate link={} bps=1000000000", silent)), 1);
  EXPECT_EQ(asks_for(fmt::format("fault link-down link={} carrier=0", silent)), 1)
      << "the host has its carrier";
  tell(switch_requests_from_unknown_state(p, {}));
  for (LinkId link = 0; link < p.topology().link_count(); ++link) EXPECT_TRUE(fabric.is_up(link));
  EXPECT_EQ(fabric.impairment_count(), 0u);
}

TEST(LabSwitch, TheStateFileKeepsTheSwitchAndItsImpairments) {
  LabState state{.spec = software_spec()};
  state.software = LabKeeper{.pid = 77, .start = 123'456};
  fabric::FaultEvent reorder{.action = FaultAction::kImpair, .id = 5, .link = 3};
  reorder.impairment.kind = fabric::ImpairmentKind::kReorder;
  reorder.impairment.share_of_2_32 = 1u << 30;
  reorder.impairment.delay_max = Duration::us(40);
  apply(state.faults, reorder);
  const auto read = lab_state_from(to_text(state));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, state);
  EXPECT_FALSE(lab_state_from(to_text(state) + "impair id=6 link=9999\n"));
}

}  // namespace
}  // namespace weft::lab
