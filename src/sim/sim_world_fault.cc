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
    case fabric::FaultAction::kLinkUp:
      if (hops_.apply(now_, fault) && fault.carrier) notify_carrier(fault.link);
      return;
    case fabric::FaultAction::kLinkRate:
    case fabric::FaultAction::kImpair:
    case fabric::FaultAction::kHeal:
      hops_.apply(now_, fault);
      return;
    case fabric::FaultAction::kPause:
      return pause(fault.host);
    case fabric::FaultAction::kResume:
      return resume(fault.host);
    case fabric::FaultAction::kCrash:
      hosts_[fault.host].crashed = true;
      return;
  }
}

// Tells the host at the end of `link` that its port has gained or lost the carrier. A host sees the
// carrier of its incoming link only.
void SimWorld::notify_carrier(LinkId link) {
  if (!config_.topology.is_last_hop(link)) return;
  const fabric::LinkPlace place = config_.topology.place(link);
  const HostIndex host = place.lower;
  HostState& h = hosts_[host];
  if (h.node == nullptr || h.crashed) return;
  const bool up = hops_.is_up(link);
  const auto bit = static_cast<world::PortMask>(1u << place.plane);
  h.ports_up = static_cast<world::PortMask>(up ? h.ports_up | bit : h.ports_up & ~bit);
  if (h.paused) return;  // resume() notifies the node
  h.node->on_port(now_, static_cast<world::PortIndex>(place.plane),
                  {.up = up, .rate = config_.topology.spec().host_rate});
  poll_host(host);
  arm_deadline(host);
}

void SimWorld::pause(HostIndex host) {
  HostState& h = hosts_[host];
  if (h.paused || h.crashed) return;
  h.paused = true;
  h.paused_since = now_;
  if (!h.backlog) h.backlog = std::make_unique<std::vector<std::uint32_t>>();
  h.backlog->reserve(config_.host_backlog_max);
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
    give_to_node(host, std::span(waited).subspan(i, std::min(kBatch, waited.size() - i)));
  }
  h.deadline_at = kNever;
  poll_host(host);
  arm_deadline(host);
}

}  // namespace weft::sim
