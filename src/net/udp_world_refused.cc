// UdpWorld, refused: a host answered with ICMP that no process of its has the port we sent to.
//
// Whoever sends knows: the error queue of the sending sockets has the destination of the packet that
// was refused. The node hears of it as a refusal and asks for itself (docs/decisions/0013).
#include <algorithm>

#include "fabric/address.h"
#include "net/udp_world.h"

namespace weft::net {

void UdpWorld::tell_refusal(std::uint32_t plane, const Ipv6& ip, std::uint16_t process) {
  // Nobody signs ICMP. Where packets are sealed only this host's own word counts.
  const bool here =
      std::any_of(planes_.begin(), planes_.end(), [&](const Plane& p) { return p.address == ip; });
  if (sessions_ != nullptr && !here) return;
  const auto note = world::Datagram::refusal(static_cast<world::PortIndex>(plane),
                                             world::Address::of(ip, process));
  node_->on_datagrams(now_, {&note, 1});
}

// Of a port that is no process of ours nothing is told.
void UdpWorld::tell_refusals(std::uint32_t plane, const IpPort& refused) {
  const auto process = process_listening(refused.port);
  if (!process) return;
  if (srv6_form() != Srv6Form::kCarrier) return tell_refusal(plane, refused.ip, *process);
  // What was refused went to its last uSID, which hosts of several leaves have: any may be meant.
  const fabric::Topology& topology = config_.place->topology;
  for (fabric::HostIndex host = 0; host < topology.host_count(); ++host) {
    const fabric::NodeId node{.plane = plane, .tier = fabric::Tier::kHost, .index = host};
    const fabric::UsidList last{.usid = {fabric::usid_of(topology, node)}};
    if (fabric::address_of(last) == refused.ip)
      tell_refusal(plane, fabric::address_of({.host = host, .plane = plane}), *process);
  }
}

// From one socket. Bounded: who sends them without end must not keep us from our work.
template <typename Socket>
void UdpWorld::hear_refusals(std::uint32_t plane, const Socket& sender) {
  std::optional<IpPort> last;
  for (int i = 0; i < 64; ++i) {
    const auto refused = sender.poll_refusal();
    if (!refused) break;
    ++counters_.refusals;
    if (refused == last) continue;  // a window of packets is refused one by one
    last = refused;
    tell_refusals(plane, *refused);
  }
}

// Now and then, and once more after the last packet went out. Nothing wakes us: the kernel would look
// for whom to wake at each packet that is sent, which is a tenth of what sending it costs.
void UdpWorld::hear_refusals() {
  refusals_next_ = counters_.sends == heard_sends_ ? kNever : now_ + kHearEvery;
  heard_sends_ = counters_.sends;
  for (std::uint32_t plane = 0; plane < planes_.size(); ++plane) {
    const Plane& from = planes_[plane];
    for (const UdpSocket& sender : from.senders) hear_refusals(plane, sender);
    if (from.tunnel) hear_refusals(plane, *from.tunnel);
  }
}

}  // namespace weft::net
