// Endpoint, peers: who is at that address, and which EVs and ways to them are denied?
#include <algorithm>

#include "transport/endpoint.h"

namespace weft::transport {
namespace {

std::size_t hash_of(const Address& address) {
  std::uint64_t h =
      (address.high ^ (address.low + address.process) * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::size_t>(h ^ h >> 29);
}

}  // namespace

Result<std::uint32_t> Endpoint::add_peer(const PeerInfo& info) {
  if (const std::uint32_t known = find_peer(info.ports[0]); known != Peer::kNobody) return known;
  std::uint32_t index = static_cast<std::uint32_t>(peers_.size());
  if (peers_.size() < config_.peer_count_max) {
    peers_.emplace_back();
  } else {
    // One whose QPs are all gone gives way.
    index = 0;
    while (index < peers_.size() && peers_[index].first_qp != Peer::kNobody) ++index;
    if (index == peers_.size()) {
      return Error{ErrorKind::kExhausted, "no peer left: peer_count_max is reached"};
    }
    peers_[index] = {};
    prober_.forget_peer(index);
    control_.forget_peer(index);
    peer_slots_.assign(peer_slots_.size(), Peer::kNobody);
    for (std::uint32_t i = 0; i < peers_.size(); ++i) {
      if (i != index) hash_peer(i);
    }
  }
  Peer& peer = peers_[index];
  for (std::uint32_t port = 0; port < port_count_; ++port)
    peer.ways[port].address = info.ports[port];
  peer.host = info.host;
  peer.turn = static_cast<PortIndex>(prng_.below(config_.port_count));
  hash_peer(index);
  return index;
}

void Endpoint::hash_peer(std::uint32_t index) {
  for (std::uint32_t port = 0; port < port_count_; ++port) {
    std::size_t slot = hash_of(peers_[index].ways[port].address) & (peer_slots_.size() - 1);
    while (peer_slots_[slot] != Peer::kNobody) slot = (slot + 1) & (peer_slots_.size() - 1);
    peer_slots_[slot] = index;
  }
}

std::uint32_t Endpoint::find_peer(const Address& address) const {
  for (std::size_t slot = hash_of(address) & (peer_slots_.size() - 1);
       peer_slots_[slot] != Peer::kNobody; slot = (slot + 1) & (peer_slots_.size() - 1)) {
    const Peer& peer = peers_[peer_slots_[slot]];
    for (std::uint32_t port = 0; port < port_count_; ++port) {
      if (peer.ways[port].address == address) return peer_slots_[slot];
    }
  }
  return Peer::kNobody;
}

void Endpoint::deny_ev(Time now, fabric::Ev ev, bool denied) {
  for (std::uint32_t i = 0; i <= qp_mask_; ++i) {
    if (qps_[i]) deny_ev(now, qps_[i]->qpn, ev, denied);
  }
}

void Endpoint::deny_ev(Time now, Qpn qpn, fabric::Ev ev, bool denied) {
  Qp* const qp = find_qp(qpn);
  if (qp == nullptr) return;
  PathSet& paths = qp->requestor.paths();
  const PathSet::Slot slot = paths.find(ev);
  if (slot != PathSet::kNone) paths.deny(now, slot, denied);
  if (slot != PathSet::kNone && qp->peer != Qp::kNoPeer) deny_answers(now, *qp, ev, denied);
  if (qp->may_send() && qp->requestor.has_work()) mark_ready(*qp);
}

// Answers leave a denied EV too, and a plane whose EVs are all denied, as long as there is another.
void Endpoint::deny_answers(Time now, const Qp& qp, fabric::Ev ev, bool denied) {
  Peer& peer = peers_[qp.peer];
  Peer::Reverse& reverse = peer.ways[ev.port].reverse;
  const auto bit = static_cast<PortMask>(1u << ev.port);
  if (!denied && !reverse.present) {
    reverse = {.ev = ev.value, .present = true, .confirmed_at = now, .open_at = {}, .asked_at = {}};
    peer.present = static_cast<PortMask>(peer.present | bit);
  }
  if (!denied || !reverse.present || reverse.ev != ev.value) return;
  const PathSet& paths = qp.requestor.paths();
  const PathSet::Slot other = paths.any_on(ev.port, ev.value);
  if (other != PathSet::kNone) {
    reverse.ev = paths.ev(other).value;
    reverse.request_id = 0;
  } else if ((peer.present & ~bit) != 0) {
    reverse = {};
    peer.present = static_cast<PortMask>(peer.present & ~bit);
  }
}

}  // namespace weft::transport
