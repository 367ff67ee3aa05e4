// SimWorld, hosts: polls nodes for packets when their ports have room, and calls their deadlines.
#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "fabric/address.h"
#include "fabric/ev.h"
#include "sim/sim_world.h"
#include "wire/framing.h"

namespace weft::sim {

using fabric::HostIndex;
using fabric::LinkId;

namespace {

// The packets that a host's port takes at a time. The port polls for more one packet time before
// the last one has left.
constexpr std::uint32_t kPortRoom = 4;

}  // namespace

void SimWorld::poll_host(HostIndex host) {
  HostState& h = hosts_[host];
  if (h.paused || h.crashed || h.node == nullptr) return;
  const std::uint32_t planes = config_.topology.plane_count();
  for (;;) {
    std::array<world::PortRoom, world::kPortsMax> room{};
    bool any = false;
    for (std::uint32_t plane = 0; plane < planes; ++plane) {
      const auto& queue = hops_.queue(config_.topology.host_up(plane, host));
      const bool takes = queue.data_backlog(now_) <= mtu_time_;
      room[plane].packets = takes ? kPortRoom : 0;
      any |= takes;
    }
    if (!any) break;
    const std::size_t count = h.node->poll_transmit(now_, std::span(room).first(planes), out_);
    for (std::size_t i = 0; i < count; ++i) send(host, out_[i]);
    if (count < world::kBatchMin) break;
  }
  // A port that is full now polls its node when it is nearly empty.
  Time again = kNever;
  for (std::uint32_t plane = 0; plane < planes; ++plane) {
    const auto& queue = hops_.queue(config_.topology.host_up(plane, host));
    if (queue.data_backlog(now_) > mtu_time_) {
      again = std::min(again, queue.data_free_at - mtu_time_);
    }
  }
  if (again < h.poll_at) {
    h.poll_at = again;
    events_.push(again, kPoll << kKindShift | host, 0);
  }
}

void SimWorld::send(HostIndex host, const world::Datagram& d) {
  ++counters_.packets_sent;
  const auto to = fabric::port_of(d.peer.ip());
  hash_.fold(static_cast<std::uint64_t>(now_.ps()) ^ std::uint64_t{host} << 40);
  hash_.fold(std::uint64_t{d.entropy} << 8 | d.port);
  hash_.fold(d.header);
  const std::uint32_t index = packets_.take();
  WEFT_ASSERT(index != PacketPool::kNone);  // packets_max must be at least the sum of all windows
  Packet& packet = packets_[index];
  packet.route = {.from = host,
                  .to = to && to->host < hosts_.size() ? to->host : host,
                  .entropy = d.entropy,
                  .plane = d.port};
  packet.wire_size = static_cast<std::uint32_t>(wire::wire_size({.header_size = d.header.size(),
                                                                 .payload_size = d.payload.size,
                                                                 .srv6 = config_.srv6_header}));
  packet.transit = {};
  packet.dscp = d.dscp;
  packet.ecn = d.ecn;
  packet.intact = true;
  packet.header_size = static_cast<std::uint8_t>(d.header.size());
  std::memcpy(packet.header.data(), d.header.data(), d.header.size());
  packet.payload = d.payload;
  if (!to || to->host >= hosts_.size()) return drop(index, counters_.drops_route);
  if (config_.forwarding == fabric::Forwarding::kSrv6) {
    const std::uint32_t path = fabric::path_of_ev(config_.topology, host, to->host, d.entropy);
    packet.route.usids = fabric::usids_for(config_.topology, d.port, host, to->host, path);
  }
  if (capture_) {
    captured_.push_back({.at = now_,
                         .route = packet.route,
                         .dscp = d.dscp,
                         .ecn = d.ecn,
                         .header_size = packet.header_size,
                         .header = packet.header,
                         .payload = d.payload});
  }
  const LinkId id = config_.topology.host_up(d.port, host);
  const switching::Admitted admitted = hops_.send(
      now_, id, {.wire_size = packet.wire_size, .control = d.dscp == world::Dscp::kControl});
  if (admitted.loss != switching::Loss::kNone) return drop(index, admitted.loss);
  travel(id, index, admitted.leaves_at);
}

void SimWorld::arm_deadline(HostIndex host) {
  HostState& h = hosts_[host];
  const Time at = h.node->next_deadline();
  // An earlier deadline event is pending: on_deadline will schedule the next one.
  if (at == kNever || h.deadline_at <= at) return;
  h.deadline_at = std::max(at, now_);
  events_.push(h.deadline_at, kDeadline << kKindShift | host, 0);
}

void SimWorld::on_deadline(HostIndex host, Time at) {
  HostState& h = hosts_[host];
  if (h.deadline_at != at) return;  // an earlier event has replaced this one
  h.deadline_at = kNever;
  if (h.paused || h.crashed) return;
  if (h.node->next_deadline() <= now_) {
    h.node->on_deadline(now_, Duration());
    poll_host(host);
  }
  arm_deadline(host);
}

}  // namespace weft::sim
