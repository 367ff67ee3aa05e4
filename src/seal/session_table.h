// SessionTable: which session is this packet of? Seals what goes, opens what comes, and says which
// hellos are to be sent. One a UdpWorld, when there is a job secret.
//
// A QP's session is found by the QPN here (coming) or by the peer's address and QPN (going); packets
// between endpoints (QPN 2) belong to the session of the two processes, which the first QP between
// them opens, as soon as it is known who the other process is. Bounded by its config: a peer without
// QPs gives way to another. secure() takes memory, nothing that is done for a packet does, but for a
// hello by which a peer turns out to be another process than before.
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

// The other end of a QP, as it said out of band.
struct SecurePeer {
  std::uint64_t incarnation = 0;  // 0: it did not say; its first fresh hello does
  std::uint32_t qpn = 0;
  std::span<const world::Address> ports{};  // all of one process
};

class SessionTable {
 public:
  // Errors: kInvalid for a secret that is too short, kSystem.
  static Result<std::unique_ptr<SessionTable>> create(const SessionTableConfig& config);

  std::uint32_t fingerprint() const { return keys_.fingerprint(); }
  // Drawn when this table was made: what peers are told of this process.
  std::uint64_t incarnation() const { return incarnation_; }

  // A session for this QP, with new random values; one that it had is over. Errors: kInvalid for a
  // peer that is this process or has no address, kExhausted, kSystem.
  Result<void> secure(Time now, std::uint32_t local_qpn, const SecurePeer& peer);
  // False if this QP has no session.
  bool close(std::uint32_t local_qpn);

  // The size of the sealed packet; 0: there are no keys for it yet, it is not to be sent.
  // REQUIRES a header of a known opcode and room for sealed_size().
  std::size_t seal(Time now, const world::Datagram& datagram, std::uint32_t ev, Bytes out);

  struct Arrival {
    world::Address from{};
    ReceiveDirection::Options options{};
  };
  // Opens a packet in place, or takes a hello: then the header is empty.
  Result<ReceiveDirection::Opened, DropReason> open(Time now, const Arrival& arrival, Bytes packet);

  // The hello that the last secure(), seal() or open() asks for, if it does; secure() may ask for
  // two.
  struct HelloOut {
    std::span<const world::Address> to;  // in any plane
    SecureHello::Packet packet;
  };
  std::optional<HelloOut> poll_hello();

 private:
  struct Peer {
    std::vector<world::Address> ports;
    std::unique_ptr<SecureSession> endpoints;  // null: it has not said yet who it is
  };
  struct Entry {
    std::uint32_t local_qpn = 0, peer = 0;
    std::unique_ptr<SecureSession> session;
  };
  struct Place {  // of an address in peers_
    world::Address address;
    std::uint32_t peer = 0;
  };
  struct Route {  // to an entry
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
  void meet(Time now, std::uint32_t peer, const EndId& said);
  void ask_for(std::optional<SecureHello> hello, std::uint32_t peer);

  SessionTableConfig config_;
  KeySchedule keys_;
  std::uint64_t incarnation_ = 0;
  std::vector<Peer> peers_;
  std::vector<Place> places_;   // sorted by address
  std::vector<Entry> entries_;  // sorted by local_qpn
  std::vector<Route> routes_;   // sorted by (peer, peer_qpn)
  // Packets come and go in runs: the last answer is mostly the next one.
  struct Last {
    world::Address address;
    std::uint32_t qpn = 0;
    Found found;
  } last_outgoing_;
  std::vector<Due> due_;
};

}  // namespace weft::seal
