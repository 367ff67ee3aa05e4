// PeerTable: finds the peer that has a given address.
//
// Holds the peers of all QPs, each with one address per port, found by any of its addresses. An
// index names a peer as long as the peer has QPs; after that another peer may get the index.
// Bounded; owned by the endpoint.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "transport/config.h"
#include "transport/peer.h"

namespace weft::transport {

class PeerTable {
 public:
  struct Options {
    std::uint32_t peer_count_max = 16;
    std::uint32_t port_count = 1;
  };
  explicit PeerTable(const Options& options);

  // REQUIRES index < size().
  Peer& operator[](std::uint32_t index) { return peers_[index]; }
  const Peer& operator[](std::uint32_t index) const { return peers_[index]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(peers_.size()); }
  std::span<Peer> all() { return peers_; }

  // The index of the peer with that address, or Peer::kNobody.
  std::uint32_t find(const Address& address) const;

  struct Added {
    std::uint32_t index = 0;
    bool is_new = false;     // the peer was not in the table
    bool is_reused = false;  // the index named another peer before
  };
  // The peer with these addresses, added if it is new. Errors: kExhausted.
  Result<Added> add(const PeerInfo& info);

  std::size_t bytes() const {
    return peers_.capacity() * sizeof(Peer) + slots_.capacity() * sizeof(std::uint32_t);
  }

 private:
  void hash(std::uint32_t index);

  std::uint32_t port_count_;
  std::uint32_t peer_count_max_;
  std::vector<Peer> peers_;           // capacity taken at construction
  std::vector<std::uint32_t> slots_;  // open addressing: address -> index
};

}  // namespace weft::transport
