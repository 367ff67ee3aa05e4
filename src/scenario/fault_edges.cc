#include "scenario/fault_edges.h"

#include <algorithm>

#include "base/assert.h"
#include "base/prng.h"

namespace weft::scenario {
namespace {

using fabric::FaultAction;
using fabric::FaultEvent;
using fabric::FaultPlace;
using fabric::ImpairmentKind;
using fabric::LinkId;
using fabric::Tier;
using fabric::Topology;

struct Span {
  Time from, until;  // kNever: to the end of the run
};

// Both directions of one link.
struct Wire {
  LinkId up, down;
};

Wire wire_of(const FaultSpec& fault, std::uint32_t i, const Topology& topology) {
  // the following links are those of the host's next ports
  if (fault.where == LinkWhere::kHostLink) {
    return {topology.host_up(fault.plane + i, fault.host),
            topology.host_down(fault.plane + i, fault.host)};
  }
  const bool t0_t1 = fault.where == LinkWhere::kT0T1;
  const std::uint32_t uplinks = t0_t1 ? topology.uplinks_of_t0() : topology.uplinks_of_t1();
  const std::uint32_t at = (t0_t1 ? fault.t1 : fault.t2) + i;
  const std::uint32_t lower = (t0_t1 ? fault.t0 : fault.t1) + at / uplinks;
  if (t0_t1) {
    return {topology.t0_up(fault.plane, lower, at % uplinks),
            topology.t0_down(fault.plane, lower, at % uplinks)};
  }
  return {topology.t1_up(fault.plane, lower, at % uplinks),
          topology.t1_down(fault.plane, lower, at % uplinks)};
}

// The directions of a link that the fault affects. The direction away from the host is first: the
// host then sees its port come up when it can already send.
std::vector<LinkId> links_of(const FaultSpec& fault, std::uint32_t i, const Topology& topology) {
  const Wire wire = wire_of(fault, i, topology);
  if (fault.direction == Direction::kUp) return {wire.up};
  if (fault.direction == Direction::kDown) return {wire.down};
  return {wire.up, wire.down};
}

std::vector<LinkId> links_of_plane(std::uint32_t plane, const Topology& topology) {
  std::vector<LinkId> links;
  for (fabric::HostIndex host = 0; host < topology.host_count(); ++host) {
    links.push_back(topology.host_up(plane, host));
    links.push_back(topology.host_down(plane, host));
  }
  return links;
}

// All links that begin or end at this switch.
std::vector<LinkId> links_of_switch(const fabric::SwitchId& id, const Topology& topology) {
  std::vector<LinkId> links;
  for (LinkId link = 0; link < topology.link_count(); ++link) {
    const auto ends = topology.ends(link);
    if (ends.from == id || ends.to == id) links.push_back(link);
  }
  return links;
}

ImpairmentKind impairment_kind(const FaultSpec& fault) {
  switch (fault.kind) {
    case FaultKind::kBurstLoss:
      return ImpairmentKind::kBurstLoss;
    case FaultKind::kReorder:
      return ImpairmentKind::kReorder;
    case FaultKind::kDuplicate:
      return ImpairmentKind::kDuplicate;
    case FaultKind::kCorrupt:
      return ImpairmentKind::kCorrupt;
    case FaultKind::kEvLoss:
      return ImpairmentKind::kEvLoss;
    case FaultKind::kControlLoss:
      return fault.control == ControlKind::kFirstNak ? ImpairmentKind::kFirstNak
                                                     : ImpairmentKind::kFirstTransportAck;
    default:
      return ImpairmentKind::kLoss;
  }
}

class Writer {
 public:
  Writer(const Topology& topology, std::span<const std::uint32_t> evs)
      : topology_(topology), evs_(evs) {}

  void add(const FaultSpec& fault) {
    for (std::uint32_t i = 0; i < fault.count; ++i) {
      const Duration shift = fault.spacing * i;
      Span span{Time::from_start(fault.from + shift), kNever};
      if (fault.until) span.until = Time::from_start(*fault.until + shift);
      add_one(fault, i, span);
      if (fault.kind != FaultKind::kHostCrash) out_.over = std::max(out_.over, span.until);
      ++id_;
    }
  }
  FaultChanges take() { return std::move(out_); }

 private:
  void add_one(const FaultSpec& fault, std::uint32_t i, Span span) {
    switch (fault.kind) {
      case FaultKind::kLinkDown:
        return take_down(links_of(fault, i, topology_), span, fault.silent);
      case FaultKind::kLinkFlap:
        for (Time at = span.from; at < span.until; at += fault.period) {
          const Time up = std::min(at + fault.period / 2, span.until);
          take_down(links_of(fault, i, topology_), {at, up}, fault.silent);
        }
        return;
      case FaultKind::kPlaneDown:
        return take_down(links_of_plane(fault.plane + i, topology_), span, fault.silent);
      case FaultKind::kSwitchDown: {
        const fabric::SwitchId id{fault.plane, fault.tier, fault.switch_index + i};
        return take_down(links_of_switch(id, topology_), span, false);
      }
      case FaultKind::kLinkSlow:
        return slow_down(fault, i, span);
      case FaultKind::kHostPause:
      case FaultKind::kHostCrash: {
        FaultEvent event;
        event.host = fault.host + i;
        const bool pauses = fault.kind == FaultKind::kHostPause;
        return push(event, pauses ? FaultAction::kPause : FaultAction::kCrash, FaultAction::kResume,
                    span);
      }
      default:
        return impair(fault, i, span);
    }
  }

  void take_down(const std::vector<LinkId>& links, Span span, bool silent) {
    for (const LinkId link : links) {
      FaultEvent event;
      event.link = link;
      event.carrier = !silent && topology_.is_last_hop(link);
      push(event, FaultAction::kLinkDown, FaultAction::kLinkUp, span);
    }
  }

  void slow_down(const FaultSpec& fault, std::uint32_t i, Span span) {
    for (const LinkId link : links_of(fault, i, topology_)) {
      FaultEvent event;
      event.link = link;
      event.percent = fault.rate_percent;
      push(event, FaultAction::kLinkRate, FaultAction::kLinkRate, span);
    }
  }

  void impair(const FaultSpec& fault, std::uint32_t i, Span span) {
    FaultEvent event;
    event.impairment.kind = impairment_kind(fault);
    event.impairment.share_of_2_32 = chance_from_ppm(fault.share_ppm);
    event.impairment.burst = fault.burst;
    event.impairment.delay_max = fault.delay;
    for (const std::uint32_t ev : fault.evs) {
      if (ev < evs_.size()) event.impairment.entropies.push_back(evs_[ev]);
    }
    const bool at_links = fault.kind != FaultKind::kEvLoss && fault.kind != FaultKind::kControlLoss;
    if (!at_links || fault.where == LinkWhere::kNicReceive) {
      event.place = FaultPlace::kNicReceive;
      return push(event, FaultAction::kImpair, FaultAction::kHeal, span);
    }
    if (fault.where == LinkWhere::kAllLinks) {
      event.place = FaultPlace::kAllLinks;
      return push(event, FaultAction::kImpair, FaultAction::kHeal, span);
    }
    // Both directions have the same id, so there is one kHeal only.
    const auto links = links_of(fault, i, topology_);
    for (std::size_t k = 0; k < links.size(); ++k) {
      event.link = links[k];
      const bool last = k + 1 == links.size();
      push(event, FaultAction::kImpair, FaultAction::kHeal,
           {span.from, last ? span.until : kNever});
    }
  }

  void push(FaultEvent event, FaultAction start, FaultAction end, Span span) {
    event.id = id_;
    event.at = span.from;
    event.action = start;
    out_.edges.push_back({event, false});
    if (span.until == kNever) return;
    event.at = span.until;
    event.action = end;
    out_.edges.push_back({event, true});
  }

  const Topology& topology_;
  std::span<const std::uint32_t> evs_;
  std::uint32_t id_ = 0;
  FaultChanges out_;
};

}  // namespace

FaultChanges changes_of(std::span<const FaultSpec> faults, const Topology& topology,
                        std::span<const std::uint32_t> first_flow_evs) {
  Writer writer(topology, first_flow_evs);
  for (const FaultSpec& fault : faults) writer.add(fault);
  return writer.take();
}

}  // namespace weft::scenario
