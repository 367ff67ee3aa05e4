#include "switch/hops.h"

#include <set>

#include "base/assert.h"

namespace weft::switching {

using fabric::FaultAction;
using fabric::FaultPlace;
using fabric::LinkId;

namespace {

// The number of a switch among the switches of all planes and tiers.
std::uint32_t switch_number(const fabric::Topology& topology, const fabric::SwitchId& at) {
  std::uint32_t number = at.plane * (topology.switch_count() / topology.plane_count()) + at.index;
  if (at.tier != fabric::Tier::kT0) number += topology.switch_count(fabric::Tier::kT0);
  if (at.tier == fabric::Tier::kT2) number += topology.switch_count(fabric::Tier::kT1);
  return number;
}

}  // namespace

Hops::Hops(const fabric::Topology& topology, const HopsConfig& config)
    : topology_(topology),
      fabric_queue_(config.fabric_queue),
      last_hop_queue_(config.last_hop_queue),
      link_delay_(topology.spec().link_delay),
      switch_delay_(topology.spec().switch_delay),
      links_(topology.link_count()),
      impairments_(Prng(config.seed).fork("impairments")),
      ecn_prng_(Prng(config.seed).fork("ecn")) {
  WEFT_ASSERT(fabric_queue_.mtu_wire_size > 0 && last_hop_queue_.mtu_wire_size > 0);
  nic_queue_ = {.data_bytes_max = config.nic_bytes_max,
                .control_bytes_max = config.nic_bytes_max,
                .mtu_wire_size = fabric_queue_.mtu_wire_size,
                .ecn = false,
                .trimming = false};
  for (LinkId link = 0; link < links_.size(); ++link) {
    WEFT_ASSERT(topology.rate(link).bits_per_second() > 0);
    links_[link].queue.set_rate(topology.rate(link));
    links_[link].last_hop = topology.is_last_hop(link);
  }
  if (config.shared_buffer_bytes == 0) return;
  buffer_of_link_.resize(links_.size());
  for (LinkId link = 0; link < links_.size(); ++link) {
    const fabric::NodeId from = topology.ends(link).from;
    if (from.tier != fabric::Tier::kHost) buffer_of_link_[link] = switch_number(topology, from);
  }
  buffers_.assign(topology.switch_count(),
                  SharedBuffer(config.shared_buffer_bytes, config.shared_alpha_percent));
}

// The queue and the marking thresholds of a slowed port shrink with its rate, because a switch sets
// them by the speed of the port. Two packets always fit.
QueueParams Hops::slowed(QueueParams params, std::uint32_t percent) {
  const std::uint64_t least = 2 * std::uint64_t{params.mtu_wire_size};
  params.data_bytes_max = std::max(params.data_bytes_max * percent / 100, least);
  params.ecn_bytes_min = params.ecn_bytes_min * percent / 100;
  params.ecn_bytes_max = params.ecn_bytes_max * percent / 100;
  return params;
}

// --- faults ------------------------------------------------------------------------------------

bool Hops::apply(Time now, const fabric::FaultEvent& fault) {
  WEFT_ASSERT(!fabric::is_of_host(fault.action));
  WEFT_ASSERT(!fabric::names_link(fault) || fault.link < links_.size());
  switch (fault.action) {
    case FaultAction::kLinkDown:
      return take_down(now, fault.link);
    case FaultAction::kLinkUp:
      return bring_up(now, fault.link);
    case FaultAction::kLinkRate:
      WEFT_ASSERT(fault.percent >= 1 && fault.percent <= 100);
      links_[fault.link].queue.set_rate(fabric::slowed(topology_.rate(fault.link), fault.percent));
      links_[fault.link].percent = static_cast<std::uint8_t>(fault.percent);
      return true;
    case FaultAction::kImpair:
      start_impairment(fault);
      return true;
    case FaultAction::kHeal:
      end_impairment(fault.id);
      return true;
    case FaultAction::kPause:
    case FaultAction::kResume:
    case FaultAction::kCrash:
      break;
  }
  return false;
}

bool Hops::take_down(Time now, LinkId id) {
  Link& link = links_[id];
  if (!link.up) return false;
  link.up = false;
  ++link.epoch;
  a_link_went_down_ = true;
  link.queue.data_free_at = link.queue.control_free_at = now;  // queued packets are lost
  return true;
}

bool Hops::bring_up(Time now, LinkId id) {
  Link& link = links_[id];
  if (link.up) return false;
  link.up = true;
  link.queue.data_free_at = link.queue.control_free_at = now;
  return true;
}

void Hops::start_impairment(const fabric::FaultEvent& fault) {
  std::uint32_t place = fault.link;
  if (fault.place == FaultPlace::kAllLinks) place = Impairments::kAllLinks;
  if (fault.place == FaultPlace::kNicReceive) place = Impairments::kNicReceive;
  impairments_.start(fault.id, place, fault.impairment);
  if (fault.place == FaultPlace::kLink) links_[fault.link].impaired = true;
}

void Hops::end_impairment(std::uint32_t id) {
  const std::set<LinkId> before = impairments_.links();
  impairments_.end(id);
  for (const LinkId link : before) links_[link].impaired = impairments_.on_link(link);
}

void Hops::end_impairments() {
  for (const LinkId link : impairments_.links()) links_[link].impaired = false;
  impairments_.end_all();
}

void Hops::set_rate(LinkId link, Rate rate) {
  links_[link].queue.set_rate(rate);
  const std::uint64_t percent =
      rate.bits_per_second() * 100 / topology_.rate(link).bits_per_second();
  links_[link].percent = static_cast<std::uint8_t>(std::clamp<std::uint64_t>(percent, 1, 100));
}

}  // namespace weft::switching
