// Duel: the fixture of a wire test. It connects a QP of the device under test to a Tester. The
// device sees a peer with an address, a QP number and a first PSN. The test decides every packet of
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
  std::uint8_t timeout = 18;            // 268 ms: in a short test no timer retransmits
  std::optional<std::uint8_t> linear_retries{}, exponential_retries{};
  std::optional<std::uint8_t> mpr{}, mpr_dest{};
  std::optional<std::uint16_t> max_wimm{}, max_wimm_dest{};
  EndOptions end{};
};

class Duel {
 public:
  explicit Duel(Session& session, const DuelOptions& options = {});

  static constexpr std::uint32_t kQpn = 0x000abc;  // the tester's QP number
  Session& session;
  DuelOptions options;
  Host host;
  End end;
  IcrcCover cover;  // from the options, otherwise as the survey found it
  Tester tester;
  // The address of "the tester's memory" that the device is given. There is no such memory: the
  // tester accepts every write.
  Address target{};
  std::uint32_t mtu_bytes() const { return 128u << static_cast<unsigned>(options.mtu); }

  // --- the device sends
  // Posts a write of `size` bytes; `id` selects the pattern of the bytes.
  void post(std::uint32_t size, std::uint64_t id = 1, std::optional<std::uint32_t> immediate = {},
            unsigned flags = IBV_SEND_SIGNALED);
  // The next packet for which `wanted` returns true; other packets are dropped. Throws Failure if
  // no such packet arrives.
  ReceivedPacket next_where(std::string_view what,
                            const std::function<bool(const ReceivedPacket&)>& wanted);
  ReceivedPacket next_write();
  // The packets of the next message in PSN order; retransmissions are dropped.
  std::vector<ReceivedPacket> message(std::uint32_t packet_count);
  // A SACK with this cumulative PSN. Bit i of `bits` acknowledges the PSN cack + 1 + i.
  wire::Packet sack(Psn cack, std::uint64_t bits = 0) const;
  // Sends the SACK that a responder would send because of `write`.
  void acknowledge(const ReceivedPacket& write, Psn cack, std::uint64_t bits = 0);
  void transport_ack(Psn psn, std::uint32_t msn);
  void transport_nak(Psn psn, wire::AckSyndrome syndrome);
  void nack(const ReceivedPacket& write, wire::NackReason reason);
  // If `seen` is a reliability probe, answers it as a responder would. Ignores any other packet.
  void answer_probe(const ReceivedPacket& seen, Psn cack, std::uint64_t bits = 0);
  // The next retransmission. Until it arrives, probes are answered with `cack` and `bits`, because
  // a device need not retransmit to a peer that is silent.
  ReceivedPacket next_retransmission(Psn cack, std::uint64_t bits = 0);
  // Sends a SACK and a Transport ACK for everything up to `last`.
  void accept(const ReceivedPacket& last, std::uint32_t msn);

  // --- the device receives
  // One packet of a message that the tester sends.
  struct Piece {
    std::int32_t psn = 0;  // counted from the tester's first PSN
    wire::Opcode opcode = wire::Opcode::kWriteOnly;
    std::uint64_t to = 0;  // offset in the device's memory
    std::uint32_t size = 16;
    std::uint64_t seed = 1;          // selects the pattern of the payload
    std::uint32_t message_size = 0;  // 0: the same as `size`
    std::uint16_t msn = 0, rqmsn = 0;
    std::uint32_t immediate = 0;
    bool ack_request = true, rtx = false, solicited = false;
    std::optional<std::uint32_t> rkey{};
    std::uint16_t timestamp = 0x1234;
  };
  void send(const Piece& piece, const Tester::SendOptions& how = {});
  wire::Packet packet_of(const Piece& piece) const;
  Psn psn(std::int32_t after) const { return Psn(options.tester_psn) + after; }
  ReceivedPacket next_sack();
  ReceivedPacket next_transport_ack();
  ReceivedPacket next_nack();
  // Throws Failure if a packet for which `unwanted` returns true arrives within this time.
  void none_where(std::string_view what, milliseconds how_long,
                  const std::function<bool(const ReceivedPacket&)>& unwanted);
  // Checks that the device still serves this QP: it must accept and acknowledge a write at `psn`
  // that has A = 1.
  void expect_still_works(std::int32_t psn);
};

// The tester as a correct responder: acknowledges each packet on arrival, and reports holes.
class CorrectResponder {
 public:
  explicit CorrectResponder(Duel& duel) : duel_(duel), cack_(Psn(duel.options.device_psn) - 1) {}
  // Sends the SACK for this packet. Returns true if the PSN arrived for the first time. REQUIRES a
  // WRITE.
  bool take(const ReceivedPacket& write);
  Psn cack() const { return cack_; }

 private:
  Duel& duel_;
  Psn cack_;
  std::set<std::uint32_t> above_;
};

// Opens a tester at the addresses in the options. If there are none, at addresses that fit the
// device. Throws SuiteError.
Tester open_tester(Session& session, const Host& host, std::uint32_t device_qpn, IcrcCover cover);

bool is_write(const ReceivedPacket& seen);
bool is_fresh_write(const ReceivedPacket& seen);  // not a retransmission

}  // namespace weft::conformance
