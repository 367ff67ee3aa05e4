// SimWorld, faults: carries out the scheduled changes of links, impairments and hosts.
#include <algorithm>
#include <utility>

#include "sim/sim_world.h"

namespace weft::sim {

using fabric::HostIndex;
using fabric::LinkId;

void SimWorld::carry_out(const fabric::FaultEvent& fault) {
  switch (fault.action) {
    case fabric::FaultAction::kLinkDown:
      return set_link(fault.link, {.up = false, .host_sees_carrier = fault.carrier});
    case fabric::FaultAction::kLinkUp:
      return set_link(fault.link, {.up = true, .host_sees_carrier = fault.carrier});
    case fabric::FaultAction::kLinkRate: {
      const Rate rate = config_.topology.rate(fault.link);
      const std::uint64_t slowed =
          std::max<std::uint64_t>(rate.bits_per_second() / 100 * fault.percent, 1'000'000);
      links_[fault.link].queue.set_rate(Rate::bps(slowed));
      links_[fault.link].percent = static_cast<std::uint8_t>(fault.percent);
      return;
    }
    case fabric::FaultAction::kImpair: {
      std::uint32_t place = fault.link;
      if (fault.place == fabric::FaultPlace::kAllLinks) place = switching::Impairments::kAllLinks;
      if (fault.place == fabric::FaultPlace::kNicReceive)
        place = switching::Impairments::kNicReceive;
      impairments_.start(fault.id, place, fault.impairment);
      if (fault.place == fabric::FaultPlace::kLink) links_[fault.link].impaired = true;
      return;
    }
    case fabric::FaultAction::kHeal:
      impairments_.end(fault.id);
      if (fault.link < links_.size())
        links_[fault.link].impaired = impairments_.on_link(fault.link);
      return;
    case fabric::FaultAction::kPause: {
      HostState& h = hosts_[fault.host];
      if (h.paused || h.crashed) return;
      h.paused = true;
      h.paused_since = now_;
      if (!h.backlog) h.backlog = std::make_unique<std::vector<std::uint32_t>>();
      h.backlog->reserve(config_.host_backlog_max);
      return;
    }
    case fabric::FaultAction::kResume:
      return resume(fault.host);
    case fabric::FaultAction::kCrash:
      hosts_[fault.host].crashed = true;
      return;
  }
}

void SimWorld::set_link(LinkId id, LinkChange change) {
  Link& link = links_[id];
  if (link.up == change.up) return;
  link.up = change.up;
  if (!link.up) ++link.epoch;
  // The queue is empty: queued packets are lost.
  link.queue.data_free_at = link.queue.control_free_at = now_;
  // A host sees the carrier of its incoming link only.
  if (!link.last_hop || !change.host_sees_carrier) return;
  const fabric::NodeId to = config_.topology.ends(id).to;
  const HostIndex host = to.index;
  const std::uint32_t plane = config_.topology.ends(id).from.plane;
  HostState& h = hosts_[host];
  if (h.node == nullptr || h.crashed) return;
  const auto bit = static_cast<world::PortMask>(1u << plane);
  h.ports_up = static_cast<world::PortMask>(change.up ? h.ports_up | bit : h.ports_up & ~bit);
  if (h.paused) return;  // resume() notifies the node
  h.node->on_port(now_, static_cast<world::PortIndex>(plane),
                  {.up = change.up, .rate = config_.topology.spec().host_rate});
  poll_host(host);
  arm_deadline(host);
}

void SimWorld::resume(HostIndex host) {
  HostState& h = hosts_[host];
  if (!h.paused) return;
  h.paused = false;
  if (h.crashed || h.node == nullptr) return;
  for (std::uint32_t plane = 0; plane < config_.topology.plane_count(); ++plane) {
    h.node->on_port(
        now_, static_cast<world::PortIndex>(plane),
        {.up = (h.ports_up >> plane & 1) != 0, .rate = config_.topology.spec().host_rate});
  }
  // First the deadline that expired during the pause, with the length of the pause; then the
  // packets that arrived meanwhile.
  if (h.node->next_deadline() <= now_) h.node->on_deadline(now_, now_ - h.paused_since);
  const std::vector<std::uint32_t> waited = std::exchange(*h.backlog, {});
  constexpr std::size_t kBatch = 64;
  for (std::size_t i = 0; i < waited.size(); i += kBatch) {
    give(host, std::span(waited).subspan(i, std::min(kBatch, waited.size() - i)));
  }
  h.deadline_at = kNever;
  poll_host(host);
  arm_deadline(host);
}

}  // namespace weft::sim
