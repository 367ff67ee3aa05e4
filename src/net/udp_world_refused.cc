// UdpWorld, refused: a host answered with ICMP that no process of its has the port we sent to.
//
// Whoever sends knows: the error queue of the sending sockets has the destination of the packet that
// was refused. The node hears of it as a refusal and asks for itself (docs/decisions/0013).
#include <sys/epoll.h>

#include <algorithm>

#include "fabric/address.h"
#include "net/udp_world.h"

namespace weft::net {

// The peer as the node knows it. None: it is no process of ours, or is not believed.
std::optional<world::Address> UdpWorld::peer_of(std::uint32_t plane, const IpPort& refused) const {
  const auto process = process_listening(refused.port);
  if (!process) return std::nullopt;
  Ipv6 ip = refused.ip;
  if (config_.ev_mode == EvMode::kSrv6) {
    // What was refused went to the last uSID: whose is it?
    const fabric::Topology& topology = config_.place->topology;
    fabric::HostIndex host = 0;
    const auto last = [&] {
      const fabric::NodeId node{.plane = plane, .tier = fabric::Tier::kHost, .index = host};
      return fabric::address_of(fabric::UsidList{.usid = {fabric::usid_of(topology, node)}});
    };
    while (host < topology.host_count() && last() != ip) ++host;
    if (host == topology.host_count()) return std::nullopt;
    ip = fabric::address_of({.host = host, .plane = plane});
  }
  // Nobody signs ICMP. Where packets are sealed only this host's own word counts.
  const bool here =
      std::any_of(planes_.begin(), planes_.end(), [&](const Plane& p) { return p.address == ip; });
  if (sessions_ != nullptr && !here) return std::nullopt;
  return world::Address::of(ip, *process);
}

void UdpWorld::hear_refusals(std::uint32_t plane) {
  std::optional<world::Address> last;
  for (const UdpSocket& sender : planes_[plane].senders) {
    // Bounded: who sends them without end must not keep us from our work.
    for (int i = 0; i < 64; ++i) {
      const auto refused = sender.poll_refusal();
      if (!refused) break;
      ++counters_.refusals;
      const auto peer = peer_of(plane, *refused);
      if (!peer || peer == last) continue;  // a window of packets is refused one by one
      last = peer;
      const auto note = world::Datagram::refusal(static_cast<world::PortIndex>(plane), *peer);
      node_->on_datagrams(now_, {&note, 1});
    }
    // An error is told once: so that the next is told too. Room is asked for again by hold().
    epoll_event event{};
    event.events = EPOLLONESHOT;
    event.data.u32 = kRoom | plane;
    epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, sender.fd(), &event);
  }
}

}  // namespace weft::net
