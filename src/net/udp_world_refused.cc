// UdpWorld, refusals: a host answered with ICMP that no process has the port that we sent to.
//
// The error queues of the sending sockets hold the destination of each refused packet. The node is
// told of it as a refusal, and checks it with a request of its own (docs/decisions/0013).
#include <algorithm>

#include "fabric/address.h"
#include "net/udp_world.h"

namespace weft::net {

void UdpWorld::tell_refusal(std::uint32_t plane, const Ipv6& ip, std::uint16_t process) {
  // ICMP is not authenticated. With sealed packets only refusals by this host count.
  const bool here =
      std::any_of(planes_.begin(), planes_.end(), [&](const Plane& p) { return p.address == ip; });
  if (sessions_ != nullptr && !here) return;
  const auto note = world::Datagram::refusal(static_cast<world::PortIndex>(plane),
                                             world::Address::of(ip, process));
  node_->on_datagrams(now_, {&note, 1});
}

// A refused port that belongs to no process of Weft is ignored.
void UdpWorld::tell_refusals(std::uint32_t plane, const os::IpPort& refused) {
  const auto process = wire::process_listening(refused.port);
  if (!process) return;
  if (srv6_form() != Srv6Form::kCarrier) return tell_refusal(plane, refused.ip, *process);
  // The refused packet went to its last uSID, which hosts at several leaves share: any of them may
  // be meant.
  const fabric::Topology& topology = config_.place->topology;
  for (fabric::HostIndex host = 0; host < topology.host_count(); ++host) {
    const fabric::NodeId node{.plane = plane, .tier = fabric::Tier::kHost, .index = host};
    const fabric::UsidList last{.usid = {fabric::usid_of(topology, node)}};
    if (fabric::address_of(last) == refused.ip)
      tell_refusal(plane, fabric::address_of({.host = host, .plane = plane}), *process);
  }
}

// Reads the refusals of one socket. Bounded, so that a stream of them does not hold us here. True
// if none are left.
template <typename Socket>
bool UdpWorld::hear_refusals(std::uint32_t plane, const Socket& sender) {
  std::optional<os::IpPort> last;
  for (int i = 0; i < 64; ++i) {
    const auto refused = sender.poll_refusal();
    if (!refused) return true;
    ++counters_.refusals;
    if (refused == last) continue;  // each packet of a window is refused
    last = refused;
    tell_refusals(plane, *refused);
  }
  return false;
}

bool UdpWorld::hear_refusals(std::uint32_t plane) {
  const Plane& from = planes_[plane];
  if (from.tunnel) return hear_refusals(plane, *from.tunnel);
  bool all = true;
  for (const os::UdpSocket& sender : from.senders) all &= hear_refusals(plane, sender);
  return all;
}

// Polls one plane per call while packets are sent, and all of them once more after the last. The
// sockets are not watched, because the kernel would notify a watcher of each packet that is sent
// (decision 13).
void UdpWorld::hear_next_refusals() {
  if (!hear_refusals(hear_turn_)) sent_at_ = now_;
  hear_turn_ = hear_turn_ + 1 == planes_.size() ? 0 : hear_turn_ + 1;
  const bool over = now_ - sent_at_ > kHearEvery * static_cast<std::int64_t>(planes_.size() + 1);
  refusals_next_ = over ? kNever : now_ + kHearEvery;
}

}  // namespace weft::net
