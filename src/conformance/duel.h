// Duel: the fixture of a wire test. A QP of the device under test is connected to a Tester. The
// device sees a peer with an address, a QP number and a first PSN; the test decides every packet of
// that peer.
#pragma once

#include <functional>
#include <set>

#include "conformance/end.h"
#include "conformance/tester.h"

namespace weft::conformance {

struct DuelOptions {
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t device_psn = 0x123456;  // first PSN of the device
  std::uint32_t tester_psn = 0x654321;  // first PSN of the tester
  std::uint8_t timeout = 18;            // 268 ms: no retransmission by timer in a short test
  std::optional<std::uint8_t> linear_retries{}, exponential_retries{};
  std::optional<std::uint8_t> mpr{}, mpr_dest{};
  std::optional<std::uint16_t> max_wimm{}, max_wimm_dest{};
  EndOptions end{};
};

class Duel {
 public:
  explicit Duel(Session& session, const DuelOptions& options = {});

  static constexpr std::uint32_t kQpn = 0x000abc;  // of the tester
  Session& session;
  DuelOptions options;
  Host host;
  End end;
  IcrcCover cover;  // from the options, or as observed
  Tester tester;
  // The address of the tester's memory that the device gets. No memory exists; the tester accepts every write.
  Address target{};
  std::uint32_t mtu_bytes() const { return 128u << static_cast<unsigned>(options.mtu); }

  // --- the device sends. Posts a write of `size` bytes of pattern `id`.
  void post(std::uint32_t size, std::uint64_t id = 1, std::optional<std::uint32_t> immediate = {},
            unsigned flags = IBV_SEND_SIGNALED);
  // The next packet that `wanted` accepts; other packets are skipped. Throws Failure if none
  // arrives.
  Seen next_where(std::string_view what, const std::function<bool(const Seen&)>& wanted);
  Seen next_write();
  // The first copies of the packets of the next message, in PSN order.
  std::vector<Seen> message(std::uint32_t packet_count);
  // A SACK for every PSN up to `cack`, and for the PSNs above it with set bits.
  wire::Packet sack(Psn cack, std::uint64_t bits = 0) const;
  // Sends the SACK that `write` triggers at a responder.
  void acknowledge(const Seen& write, Psn cack, std::uint64_t bits = 0);
  void transport_ack(Psn psn, std::uint32_t msn);
  void transport_nak(Psn psn, wire::AckSyndrome syndrome);
  void nack(const Seen& write, wire::NackReason reason);
  // Answers a reliability probe as a responder would; ignores every other packet.
  void answer_probe(const Seen& seen, Psn cack, std::uint64_t bits = 0);
  // The next retransmission. Until then probes are answered with `cack` and `bits`, because a
  // device need not retransmit to a silent peer.
  Seen next_retransmission(Psn cack, std::uint64_t bits = 0);
  // Sends SACK and Transport ACK for everything up to `last`.
  void accept(const Seen& last, std::uint32_t msn);

  // --- the device receives. One packet of a message that the tester sends.
  struct Piece {
    std::int32_t psn = 0;  // relative to the tester's first PSN
    wire::Opcode opcode = wire::Opcode::kWriteOnly;
    std::uint64_t to = 0;  // offset in the device's memory
    std::uint32_t size = 16;
    std::uint64_t seed = 1;          // of the payload
    std::uint32_t message_size = 0;  // 0: `size`
    std::uint16_t msn = 0, rqmsn = 0;
    std::uint32_t immediate = 0;
    bool ack_request = true, rtx = false, solicited = false;
    std::optional<std::uint32_t> rkey{};
    std::uint16_t timestamp = 0x1234;
  };
  void send(const Piece& piece, const Tester::SendOptions& how = {});
  wire::Packet packet_of(const Piece& piece) const;
  Psn psn(std::int32_t after) const { return Psn(options.tester_psn) + after; }
  Seen next_sack();
  Seen next_transport_ack();
  Seen next_nack();
  // Fails if such a packet arrives within this time.
  void none_where(std::string_view what, milliseconds how_long,
                  const std::function<bool(const Seen&)>& unwanted);
  // Checks that the device still serves this QP: it accepts and acknowledges a write with A = 1 at
  // `psn`.
  void still_works(std::int32_t psn);
};

// A responder of the device's writes: acknowledges each packet on arrival and reports holes.
class Receipt {
 public:
  explicit Receipt(Duel& duel) : duel_(duel), cack_(Psn(duel.options.device_psn) - 1) {}
  // Sends the SACK. Returns true for the first copy of that PSN. REQUIRES a WRITE.
  bool take(const Seen& write);
  Psn cack() const { return cack_; }

 private:
  Duel& duel_;
  Psn cack_;
  std::set<std::uint32_t> above_;
};

// Opens a tester at the addresses of the options, or at addresses that fit the device. Throws
// SuiteError.
Tester open_tester(Session& session, const Host& host, std::uint32_t device_qpn, IcrcCover cover);

bool is_write(const Seen& seen);
bool is_fresh_write(const Seen& seen);  // not a retransmission

}  // namespace weft::conformance
