// Duel: a QP of the device under test, connected to a Tester: what a wire test has. The device
// believes that a peer with an address, a QP number and a first PSN is there; what that peer does is
// the test's to say.
#pragma once

#include <functional>
#include <set>

#include "conformance/end.h"
#include "conformance/tester.h"

namespace weft::conformance {

struct DuelOptions {
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t device_psn = 0x123456;  // the device sends from here
  std::uint32_t tester_psn = 0x654321;  // the tester does
  std::uint8_t timeout = 18;            // 268 ms: nothing is sent again unasked in a short test
  std::optional<std::uint8_t> linear_retries{}, exponential_retries{};
  std::optional<std::uint8_t> mpr{}, mpr_dest{};
  std::optional<std::uint16_t> max_wimm{}, max_wimm_dest{};
  EndOptions end{};
};

class Duel {
 public:
  explicit Duel(Session& session, const DuelOptions& options = {});

  static constexpr std::uint32_t kQpn = 0x000abc;  // the tester's
  Session& session;
  DuelOptions options;
  Host host;
  End end;
  IcrcCover cover;  // as the options say, or as the device has it
  Tester tester;
  // What the device is told of the tester's memory: nothing is there, the tester takes anything.
  Address target{};
  std::uint32_t mtu_bytes() const { return 128u << static_cast<unsigned>(options.mtu); }

  // --- the device sends. Posts a write of `size` bytes of pattern `id`.
  void post(std::uint32_t size, std::uint64_t id = 1, std::optional<std::uint32_t> immediate = {},
            unsigned flags = IBV_SEND_SIGNALED);
  // The next packet that is of this kind; others are passed over. Throws Failure when none comes.
  Seen next_where(std::string_view what, const std::function<bool(const Seen&)>& wanted);
  Seen next_write();
  // The first copies of the packets of the next message, in PSN order.
  std::vector<Seen> message(std::uint32_t packet_count);
  // A SACK that says: everything up to `cack`, and above it what the bits say.
  wire::Packet sack(Psn cack, std::uint64_t bits = 0) const;
  // The SACK that such a packet triggers, as a responder without holes would send it.
  void acknowledge(const Seen& write, Psn cack, std::uint64_t bits = 0);
  void transport_ack(Psn psn, std::uint32_t msn);
  void transport_nak(Psn psn, wire::AckSyndrome syndrome);
  void nack(const Seen& write, wire::NackReason reason);
  // What a responder answers to a reliability probe; anything else is left alone.
  void answer_probe(const Seen& seen, Psn cack, std::uint64_t bits = 0);
  // The next retransmission, by a responder that has `cack` and `bits` and says so when it is asked:
  // a device need not send again to somebody who is silent altogether.
  Seen next_again(Psn cack, std::uint64_t bits = 0);
  // SACK and Transport ACK for all of it.
  void accept(const Seen& last, std::uint32_t msn);

  // --- the device receives. A packet of a message of the tester's.
  struct Piece {
    std::int32_t psn = 0;  // after the first
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
  void send(const Piece& piece, const Tester::Way& way = {});
  wire::Packet packet_of(const Piece& piece) const;
  Psn psn(std::int32_t after) const { return Psn(options.tester_psn) + after; }
  Seen next_sack();
  Seen next_transport_ack();
  Seen next_nack();
  // That no such packet comes for a while.
  void none_where(std::string_view what, milliseconds how_long,
                  const std::function<bool(const Seen&)>& unwanted);
  // A write with A = 1 at `psn` is taken and acknowledged: the device lives and still serves this QP.
  void still_works(std::int32_t psn);
};

// What a responder knows of the device's writes: acknowledges each as it comes, holes reported.
class Receipt {
 public:
  explicit Receipt(Duel& duel) : duel_(duel), cack_(Psn(duel.options.device_psn) - 1) {}
  // Sends the SACK. True for the first copy of that PSN. REQUIRES a WRITE.
  bool take(const Seen& write);
  Psn cack() const { return cack_; }

 private:
  Duel& duel_;
  Psn cack_;
  std::set<std::uint32_t> above_;
};

// Where the tester and the device are, by the options or as fits the device. Throws Trouble.
Tester open_tester(Session& session, const Host& host, std::uint32_t device_qpn, IcrcCover cover);

bool is_write(const Seen& seen);
bool is_fresh_write(const Seen& seen);  // not a retransmission

}  // namespace weft::conformance
