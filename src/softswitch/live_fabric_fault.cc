// LiveFabric: faults, and the counters as text.
#include <fmt/core.h>

#include <algorithm>

#include "softswitch/live_fabric.h"

namespace weft::softswitch {

using fabric::FaultAction;
using fabric::LinkId;

Result<void> LiveFabric::apply(Time now, const fabric::FaultEvent& fault) {
  const bool one_link =
      fault.action == FaultAction::kLinkDown || fault.action == FaultAction::kLinkUp ||
      fault.action == FaultAction::kLinkRate ||
      (fault.action == FaultAction::kImpair && fault.place == fabric::FaultPlace::kLink);
  if (one_link && fault.link >= links_.size()) {
    return Error{ErrorKind::kInvalid, fmt::format("link {}: no such link; expected 0 to {}",
                                                  fault.link, links_.size() - 1)};
  }
  run(now);
  switch (fault.action) {
    case FaultAction::kLinkDown:
    case FaultAction::kLinkUp:
      set_link(fault);
      return {};
    case FaultAction::kLinkRate: {
      if (fault.percent < 1 || fault.percent > 100) {
        return Error{ErrorKind::kInvalid,
                     fmt::format("rate {} %: expected 1 to 100", fault.percent)};
      }
      const std::uint64_t slowed = std::max<std::uint64_t>(
          config_.topology.rate(fault.link).bits_per_second() / 100 * fault.percent, 1'000'000);
      set_rate(fault.link, Rate::bps(slowed));
      return {};
    }
    case FaultAction::kImpair: {
      if (impairment_ids_.size() == kImpairmentsMax) {
        return Error{ErrorKind::kExhausted,
                     fmt::format("{} impairments are active; heal some first", kImpairmentsMax)};
      }
      std::uint32_t place = fault.link;
      if (fault.place == fabric::FaultPlace::kAllLinks) place = switching::Impairments::kAllLinks;
      if (fault.place == fabric::FaultPlace::kNicReceive)
        place = switching::Impairments::kNicReceive;
      impairments_.start(fault.id, place, fault.impairment);
      impairment_ids_.push_back(fault.id);
      if (fault.place == fabric::FaultPlace::kLink) links_[fault.link].impaired = true;
      return {};
    }
    case FaultAction::kHeal:
      impairments_.end(fault.id);
      std::erase(impairment_ids_, fault.id);
      for (LinkId link = 0; link < links_.size(); ++link) {
        if (links_[link].impaired) links_[link].impaired = impairments_.on_link(link);
      }
      return {};
    case FaultAction::kPause:
    case FaultAction::kResume:
    case FaultAction::kCrash:
      break;
  }
  return Error{ErrorKind::kUnsupported,
               "a host is a process of its own: stop, continue or kill that"};
}

void LiveFabric::end_impairments(Time now) {
  run(now);
  impairments_.end_all();
  impairment_ids_.clear();
  for (Link& link : links_) link.impaired = false;
}

void LiveFabric::set_rate(LinkId link, Rate rate) {
  links_[link].queue.set_rate(rate);
  const std::uint64_t percent =
      rate.bits_per_second() * 100 / config_.topology.rate(link).bits_per_second();
  links_[link].percent = static_cast<std::uint8_t>(std::clamp<std::uint64_t>(percent, 1, 100));
}

void LiveFabric::set_link(const fabric::FaultEvent& fault) {
  Link& link = links_[fault.link];
  const bool up = fault.action == FaultAction::kLinkUp;
  if (link.up == up) return;
  link.up = up;
  if (!up) ++link.epoch;
  // Queued packets are lost.
  link.queue.data_free_at = link.queue.control_free_at = now_;
}

std::string to_json(const LiveFabric& fabric) {
  const LiveFabricCounters& c = fabric.counters();
  LinkCounters total;
  std::string links;
  for (LinkId id = 0; id < fabric.topology().link_count(); ++id) {
    const LinkCounters& l = fabric.counters(id);
    const std::uint64_t drops = l.drops_queue + l.drops_down + l.drops_fault;
    if (l.packets + drops == 0 && fabric.is_up(id)) continue;
    total.trims += l.trims;
    total.ecn_marks += l.ecn_marks;
    total.drops_queue += l.drops_queue;
    total.drops_down += l.drops_down;
    total.drops_fault += l.drops_fault;
    links += fmt::format(
        R"({}{{"link":{},"name":"{}","up":{},"packets":{},"bytes":{},"trims":{},"ecn_marks":{},)"
        R"("drops_queue":{},"drops_down":{},"drops_fault":{}}})",
        links.empty() ? "" : ",", id, fabric.topology().describe(id), fabric.is_up(id), l.packets,
        l.bytes, l.trims, l.ecn_marks, l.drops_queue, l.drops_down, l.drops_fault);
  }
  return fmt::format(
      R"({{"packets_in":{},"packets_out":{},"under_way":{},"trims":{},"ecn_marks":{},)"
      R"("drops_queue":{},"drops_down":{},"drops_fault":{},"drops_route":{},"drops_memory":{},)"
      R"("ignored":{},"links":[{}]}})",
      c.packets_in, c.packets_out, fabric.packets_under_way(), total.trims, total.ecn_marks,
      total.drops_queue, total.drops_down, total.drops_fault, c.drops_route, c.drops_memory,
      c.ignored, links);
}

}  // namespace weft::softswitch
