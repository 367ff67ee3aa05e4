#include "transport/peer_table.h"

#include <bit>

namespace weft::transport {
namespace {

std::size_t hash_of(const Address& address) {
  std::uint64_t h =
      (address.high ^ (address.low + address.process) * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::size_t>(h ^ h >> 29);
}

}  // namespace

PeerTable::PeerTable(const Options& options)
    : port_count_(options.port_count), peer_count_max_(options.peer_count_max) {
  peers_.reserve(peer_count_max_);
  slots_.assign(std::bit_ceil(2 * peer_count_max_ * port_count_), Peer::kNobody);
}

Result<PeerTable::Added> PeerTable::add(const PeerInfo& info) {
  if (const std::uint32_t known = find(info.ports[0]); known != Peer::kNobody)
    return Added{.index = known};
  Added added{.index = size(), .is_new = true};
  if (size() < peer_count_max_) {
    peers_.emplace_back();
  } else {
    added.index = 0;
    while (added.index < size() && peers_[added.index].first_qp != Peer::kNobody) ++added.index;
    if (added.index == size()) {
      return Error{ErrorKind::kExhausted, "no peer left: peer_count_max is reached"};
    }
    added.is_reused = true;
    peers_[added.index] = {};
    slots_.assign(slots_.size(), Peer::kNobody);
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (i != added.index) hash(i);
    }
  }
  Peer& peer = peers_[added.index];
  for (std::uint32_t port = 0; port < port_count_; ++port)
    peer.planes[port].address = info.ports[port];
  peer.host = info.host;
  hash(added.index);
  return added;
}

// At most half of slots_ is used, so every search ends at an empty entry.
void PeerTable::hash(std::uint32_t index) {
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t port = 0; port < port_count_; ++port) {
    std::size_t slot = hash_of(peers_[index].planes[port].address) & mask;
    while (slots_[slot] != Peer::kNobody) slot = (slot + 1) & mask;
    slots_[slot] = index;
  }
}

std::uint32_t PeerTable::find(const Address& address) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash_of(address) & mask; slots_[slot] != Peer::kNobody;
       slot = (slot + 1) & mask) {
    const Peer& peer = peers_[slots_[slot]];
    for (std::uint32_t port = 0; port < port_count_; ++port) {
      if (peer.planes[port].address == address) return slots_[slot];
    }
  }
  return Peer::kNobody;
}

}  // namespace weft::transport
