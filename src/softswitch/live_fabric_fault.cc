// LiveFabric: faults, and the counters as text.
#include <fmt/core.h>

#include "softswitch/live_fabric.h"

namespace weft::softswitch {

using fabric::FaultAction;
using fabric::LinkId;

Result<void> LiveFabric::apply(Time now, const fabric::FaultEvent& fault) {
  const std::uint32_t link_count = config_.topology.link_count();
  if (fabric::is_of_host(fault.action)) {
    return Error{ErrorKind::kUnsupported,
                 "a host is a process of its own: stop, continue or kill that"};
  }
  if (fabric::names_link(fault) && fault.link >= link_count) {
    return Error{ErrorKind::kInvalid, fmt::format("link {}: no such link; expected 0 to {}",
                                                  fault.link, link_count - 1)};
  }
  if (fault.action == FaultAction::kLinkRate && (fault.percent < 1 || fault.percent > 100)) {
    return Error{ErrorKind::kInvalid, fmt::format("rate {} %: expected 1 to 100", fault.percent)};
  }
  if (fault.action == FaultAction::kImpair && impairment_ids_.size() == kImpairmentsMax) {
    return Error{ErrorKind::kExhausted,
                 fmt::format("{} impairments are active; heal some first", kImpairmentsMax)};
  }
  run(now);
  hops_.apply(now_, fault);
  if (fault.action == FaultAction::kImpair) impairment_ids_.push_back(fault.id);
  if (fault.action == FaultAction::kHeal) std::erase(impairment_ids_, fault.id);
  return {};
}

void LiveFabric::end_impairments(Time now) {
  run(now);
  hops_.end_impairments();
  impairment_ids_.clear();
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
      c.packets_in, c.packets_out, fabric.packets_in_fabric(), total.trims, total.ecn_marks,
      total.drops_queue, total.drops_down, total.drops_fault, c.drops_route, c.drops_memory,
      c.ignored, links);
}

}  // namespace weft::softswitch
