#include "scenario/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scenario/fault_edges.h"
#include "scenario/names.h"

namespace weft::scenario {
namespace {

using fabric::FaultAction;
using fabric::FaultEvent;

// Merges overlapping faults. It counts the faults that affect each link and host, and emits only
// events that change something.
class FaultMerger {
 public:
  void take(const FaultChange& edge, std::vector<FaultEvent>& out) {
    const FaultEvent& event = edge.event;
    switch (event.action) {
      case FaultAction::kLinkDown:
        return link_down(event, out);
      case FaultAction::kLinkUp:
        return link_up(event, out);
      case FaultAction::kLinkRate:
        return link_rate(edge, out);
      case FaultAction::kPause:
        if (++paused_[event.host] == 1) out.push_back(event);
        return;
      case FaultAction::kResume:
        if (--paused_[event.host] == 0) out.push_back(event);
        return;
      case FaultAction::kCrash:
      case FaultAction::kImpair:
      case FaultAction::kHeal:
        out.push_back(event);
        return;
    }
  }

 private:
  struct Down {
    std::uint32_t faults = 0;
    bool carrier_lost = false;
  };

  void link_down(const FaultEvent& event, std::vector<FaultEvent>& out) {
    Down& down = down_[event.link];
    const bool news = ++down.faults == 1 || (event.carrier && !down.carrier_lost);
    down.carrier_lost |= event.carrier;
    if (news) out.push_back(event);
  }
  void link_up(FaultEvent event, std::vector<FaultEvent>& out) {
    Down& down = down_[event.link];
    if (--down.faults > 0) return;
    event.carrier = down.carrier_lost;
    down.carrier_lost = false;
    out.push_back(event);
  }
  void link_rate(const FaultChange& edge, std::vector<FaultEvent>& out) {
    std::multiset<std::uint32_t>& rates = rates_[edge.event.link];
    const std::uint32_t before = rates.empty() ? 100 : *rates.begin();
    if (edge.ends) {
      rates.erase(rates.find(edge.event.percent));
    } else {
      rates.insert(edge.event.percent);
    }
    FaultEvent event = edge.event;
    event.percent = rates.empty() ? 100 : *rates.begin();
    if (event.percent != before) out.push_back(event);
  }

  std::map<fabric::LinkId, Down> down_;
  std::map<fabric::LinkId, std::multiset<std::uint32_t>> rates_;
  std::map<fabric::HostIndex, std::uint32_t> paused_;
};

std::string place_of(const FaultSpec& fault) {
  switch (fault.where) {
    case LinkWhere::kNicReceive:
      return "at every receiving NIC";
    case LinkWhere::kAllLinks:
      return "on all links";
    case LinkWhere::kHostLink:
      return fmt::format("on host {}'s link in plane {}", fault.host, fault.plane);
    case LinkWhere::kT0T1:
      return fmt::format("on the link of T0 {} to its T1 {} in plane {}", fault.t0, fault.t1,
                         fault.plane);
    case LinkWhere::kT1T2:
      return fmt::format("on the link of T1 {} to its T2 {} in plane {}", fault.t1, fault.t2,
                         fault.plane);
  }
  return {};
}

}  // namespace

FaultPlan make_fault_plan(std::span<const FaultSpec> faults, const fabric::Topology& topology,
                          std::span<const std::uint32_t> first_flow_evs) {
  FaultChanges edges = changes_of(faults, topology, first_flow_evs);
  // At the same instant, starts come before ends: a link stays down if one fault ends when another
  // one begins.
  std::stable_sort(edges.edges.begin(), edges.edges.end(),
                   [](const FaultChange& a, const FaultChange& b) {
                     return a.event.at != b.event.at ? a.event.at < b.event.at : a.ends < b.ends;
                   });
  FaultPlan plan;
  plan.healed_at = edges.over;
  FaultMerger joiner;
  for (const FaultChange& edge : edges.edges) joiner.take(edge, plan.events);
  return plan;
}

std::string describe(const FaultSpec& fault) {
  std::string text(name_of(kFaultNames, fault.kind));
  switch (fault.kind) {
    case FaultKind::kPlaneDown:
      text += fmt::format(" of plane {}", fault.plane);
      break;
    case FaultKind::kSwitchDown:
      text += fmt::format(" of {} {} in plane {}", name_of(kSwitchTierNames, fault.tier),
                          fault.switch_index, fault.plane);
      break;
    case FaultKind::kHostPause:
    case FaultKind::kHostCrash:
      text += fmt::format(" of host {}", fault.host);
      break;
    case FaultKind::kEvLoss:
      text += fmt::format(" of {} EVs", fault.evs.size());
      break;
    case FaultKind::kControlLoss:
      text += fmt::format(" of every {}", name_of(kControlNames, fault.control));
      break;
    default:
      text += " " + place_of(fault);
  }
  if (fault.direction != Direction::kBoth) {
    text += fmt::format(", {} only", name_of(kDirectionNames, fault.direction));
  }
  if (fault.share_ppm > 0) text += fmt::format(", {:.4g} %", fault.share_ppm / 1e4);
  if (fault.kind == FaultKind::kLinkSlow) text += fmt::format(", to {} %", fault.rate_percent);
  if (fault.count > 1) text += fmt::format(", {} of them", fault.count);
  text += fmt::format(", {:.6g} us", fault.from.to_us());
  return text + (fault.until ? fmt::format(" to {:.6g} us", fault.until->to_us()) : " on");
}

}  // namespace weft::scenario
