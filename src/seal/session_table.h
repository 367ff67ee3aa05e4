// SessionTable: finds the session of each packet, seals and opens packets, and says which hellos
// are to be sent. A UdpWorld has one if there is a job secret.
//
// The session of a QP is found by the local QPN for arriving packets, and by the peer's address and
// QPN for packets to be sent. Packets between endpoints (QPN 2) belong to the session of the two
// processes. The first QP between these processes opens that session, as soon as the peer's
// incarnation is known. The table is bounded by its config: a peer without QPs is replaced if there
// is no other place. secure() allocates. Packets do not, except a hello which shows that the peer
// is another process than before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "seal/secure_session.h"
#include "world/world.h"

namespace weft::seal {

struct SessionTableConfig {
  ConstBytes job_secret{};
  std::uint16_t process = 0;
  std::uint32_t qps_max = 1024;
  std::uint32_t peers_max = 1024;
  std::uint32_t epoch_shift = kEpochShift;
};

// The peer of a QP, as exchanged out of band.
struct SecurePeer {
  // 0: not known. Then it is learned from the first hello that echoes our random value.
  std::uint64_t incarnation = 0;
  std::uint32_t qpn = 0;
  std::span<const world::Address> ports{};  // the addresses of the peer process
};

class SessionTable {
 public:
  // Errors: kInvalid for a job secret that is too short, kSystem.
  static Result<std::unique_ptr<SessionTable>> create(const SessionTableConfig& config);

  std::uint32_t fingerprint() const { return keys_.fingerprint(); }
  // The incarnation of this process, drawn when the table is made and told to peers.
  std::uint64_t incarnation() const { return incarnation_; }

  // Makes a session for this QP, with new random values. An earlier session of the QP ends. Errors:
  // kInvalid if the peer is this process or has no address, kExhausted, kSystem.
  Result<void> secure(Time now, std::uint32_t local_qpn, const SecurePeer& peer);
  // Ends the session of a QP. False if it has none.
  bool close(std::uint32_t local_qpn);

  // Seals a packet into `out` and returns its size. 0: the session has no keys yet, and the packet
  // must not be sent. REQUIRES a header of a known opcode and an `out` of at least sealed_size().
  std::size_t seal(Time now, const world::Datagram& datagram, std::uint32_t ev, Bytes out);

  struct Arrival {
    world::Address from{};
    ReceiveDirection::Options options{};
  };
  // Opens a packet in place. If the packet is a hello, handles it and returns an empty header.
  Result<ReceiveDirection::Opened, DropReason> open(Time now, const Arrival& arrival, Bytes packet);

  // The next hello that is due because of secure(), seal() or open(), if there is one; secure() may
  // cause two.
  struct HelloOut {
    std::span<const world::Address> to;  // in any plane
    SecureHello::Packet packet;
  };
  std::optional<HelloOut> poll_hello();

 private:
  struct Peer {
    std::vector<world::Address> ports;
    std::unique_ptr<SecureSession> endpoints;  // null until the peer's incarnation is known
  };
  struct Entry {
    std::uint32_t local_qpn = 0, peer = 0;
    std::unique_ptr<SecureSession> session;
  };
  struct Place {  // maps an address to an index in peers_
    world::Address address;
    std::uint32_t peer = 0;
  };
  struct Route {  // maps a peer's QPN to the entry of our QP
    std::uint32_t peer = 0, peer_qpn = 0;
    std::uint32_t local_qpn = 0;
  };
  struct Due {
    SecureHello hello;
    std::uint32_t peer = 0;
  };
  static constexpr std::uint32_t kNobody = 0xffff'ffff;

  explicit SessionTable(const KeySchedule& keys) : keys_(keys) {}
  Result<std::unique_ptr<SecureSession>> make_session(std::uint32_t local_qpn, const EndId& peer);
  Result<std::uint32_t> free_peer() const;
  Result<std::uint32_t> place_peer(const SecurePeer& peer);
  std::uint32_t find_peer(const world::Address& address) const;
  Entry* find_entry(std::uint32_t local_qpn);
  Entry* find_route(std::uint32_t peer, std::uint32_t peer_qpn);
  struct Found {
    SecureSession* session = nullptr;
    std::uint32_t peer = kNobody;
  };
  Found find_outgoing(const world::Address& to, std::uint32_t qpn);
  Found find_incoming(const world::Address& from, std::uint32_t qpn);
  Result<void, DropReason> on_hello(Time now, ConstBytes packet);
  void add_endpoint_session(Time now, std::uint32_t peer, const EndId& said);
  void queue_hello(std::optional<SecureHello> hello, std::uint32_t peer);

  SessionTableConfig config_;
  KeySchedule keys_;
  std::uint64_t incarnation_ = 0;
  std::vector<Peer> peers_;
  std::vector<Place> places_;   // sorted by address
  std::vector<Entry> entries_;  // sorted by local_qpn
  std::vector<Route> routes_;   // sorted by (peer, peer_qpn)
  // The result of the last lookup: packets come in runs of one QP, so the next lookup is mostly the
  // same.
  struct Last {
    world::Address address;
    std::uint32_t qpn = 0;
    Found found;
  } last_outgoing_;
  std::vector<Due> due_;
};

}  // namespace weft::seal
