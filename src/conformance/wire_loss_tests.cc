// Loss: which packets the device retransmits, and when; recovery from a lost acknowledgement.
#include <set>

#include "conformance/duel.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

bool is_retransmission(const ReceivedPacket& seen) { return is_write(seen) && seen.bth().rtx; }

// The timeout attribute 10 is 1.05 ms.
constexpr DuelOptions kQuick{.timeout = 10};

void timeout_retransmits(Session& session) {
  Duel duel(session, kQuick);
  duel.post(100);
  const ReceivedPacket first = duel.next_write();
  const ReceivedPacket again = duel.next_retransmission(first.bth().psn - 1);
  equal_hex("PSN", again.bth().psn.value(), first.bth().psn.value());
}

// Compares a retransmission with the first copy, except rtx, A and the timestamp.
void retransmission_is_equal(Session& session) {
  Duel duel(session, kQuick);
  duel.post(100, 1, 0x77);
  const ReceivedPacket first = duel.next_write();
  const ReceivedPacket again = duel.next_retransmission(first.bth().psn - 1);
  equal("opcode", std::string(wire::to_string(again.bth().opcode)),
        std::string(wire::to_string(first.bth().opcode)));
  wire::Write a = *first.as<wire::Write>(), b = *again.as<wire::Write>();
  a.sent = b.sent = {};
  holds(a == b, "METH, RETH and immediate as before", wire::to_string(again.packet));
  holds(first.payload == again.payload, "the same payload", "another");
}

void retransmission_uses_other_ev(Session& session) {
  Duel duel(session, kQuick);
  duel.post(100);
  const ReceivedPacket first = duel.next_write();
  const ReceivedPacket again = duel.next_retransmission(first.bth().psn - 1);
  holds(first.path() != again.path(), "the retransmission on another EV", "the same");
}

// The third of ten packets is lost, and SACKs report that. Only the third may be retransmitted.
void hole_is_retransmitted(Session& session) {
  Duel duel(session, {.timeout = 16});
  duel.post(10 * duel.mtu_bytes());
  const auto packets = duel.message(10);
  const Psn lost = packets[2].bth().psn;
  // bit i is the PSN cack + 1 + i; bit 0, the lost packet, is not set
  const std::uint64_t bits = 0b1111'1110;
  duel.acknowledge(packets[9], lost - 1, bits);
  const ReceivedPacket again = duel.next_retransmission(lost - 1, bits);
  equal_hex("PSN sent again", again.bth().psn.value(), lost.value());
  duel.acknowledge(again, packets[9].bth().psn);
  duel.transport_ack(packets[9].bth().psn, 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
}

// Packets that a SACK's bitmap acknowledges must not be retransmitted.
void only_missing_is_retransmitted(Session& session) {
  Duel duel(session, kQuick);
  duel.post(8 * duel.mtu_bytes());
  const auto packets = duel.message(8);
  const Psn first = packets[0].bth().psn;
  std::set<std::uint32_t> again;
  const auto sacked_at = Clock::now(), until = sacked_at + milliseconds(300);
  duel.acknowledge(packets[7], first - 1, 0b1111'1110);
  while (Clock::now() < until) {
    const auto seen = duel.tester.next(until);
    if (!seen || !is_retransmission(*seen)) continue;
    // Ignore packets that may have been in flight when the SACK arrived.
    if (seen->at > sacked_at + milliseconds(50)) again.insert(seen->bth().psn.value());
    duel.acknowledge(packets[7], first - 1, 0b1111'1110);
  }
  again.erase(first.value());
  holds(again.empty(), "only the PSN that the SACKs leave out sent again",
        fmt::format("{} others too", again.size()));
}

void nack_retransmits(Session& session, wire::NackReason reason) {
  Duel duel(session);  // with this timeout, a timer alone would retransmit after 268 ms
  duel.post(100);
  const ReceivedPacket first = duel.next_write();
  duel.nack(first, reason);
  const auto asked = Clock::now();
  const ReceivedPacket again = duel.next_where("a retransmission", is_retransmission);
  equal_hex("PSN sent again", again.bth().psn.value(), first.bth().psn.value());
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - asked).count();
  holds(took < 200, "sooner than the timer would", fmt::format("after {} ms", took));
}

// The Transport ACK is lost, but SACKs acknowledge every packet: the write must still complete.
void lost_transport_ack(Session& session) {
  Duel duel(session, kQuick);
  duel.post(100);
  const ReceivedPacket first = duel.next_write();
  duel.acknowledge(first, first.bth().psn);
  const ReceivedPacket again = duel.next_where("the last packet of the message again", is_write);
  equal_hex("PSN", again.bth().psn.value(), first.bth().psn.value());
  holds(again.bth().rtx, "rtx in it", "clear");
  duel.accept(again, 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
}

// The SACK is lost, but the Transport ACK arrives: the write must still complete.
void lost_sack(Session& session) {
  Duel duel(session, kQuick);
  duel.post(100);
  const ReceivedPacket first = duel.next_write();
  duel.transport_ack(first.bth().psn, 1);
  const auto until = session.ends_at();
  ibv_wc wc{};
  while (Clock::now() < until) {
    if (duel.host.library.mrc_poll_cq(duel.end.send_cq, 1, &wc) == 1)
      return completed_as(wc, IBV_WC_SUCCESS, 1);
    const auto seen = duel.tester.next(Clock::now() + milliseconds(2));
    if (seen && is_write(*seen)) duel.accept(*seen, 1);
    if (seen) duel.answer_probe(*seen, first.bth().psn);
  }
  fail("a completion", "none came in time");
}

void exhausted_retries_fail_qp(Session& session) {
  Duel duel(session, {.timeout = 8, .linear_retries = 3, .exponential_retries = 3});
  duel.post(100, 1);
  duel.post(100, 2);
  completed_as(duel.end.wait_send(), IBV_WC_RETRY_EXC_ERR, 1);
  completed_as(duel.end.wait_send(), IBV_WC_WR_FLUSH_ERR, 2);
  equal("state", static_cast<int>(duel.end.state()), static_cast<int>(IBV_QPS_ERR));
}

// A silence of 30 ms must not fail a QP that has retries left.
void short_silence_fails_nothing(Session& session) {
  Duel duel(session, kQuick);
  duel.post(100);
  const ReceivedPacket first = duel.next_write();
  duel.end.expect_no_completion(duel.end.send_cq, milliseconds(30));
  duel.accept(first, 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
}

void tail_is_probed(Session& session) {
  Duel duel(session);
  duel.post(100);
  duel.next_write();
  const ReceivedPacket probe =
      duel.next_where("a reliability probe or the packet again", [](const ReceivedPacket& s) {
        return s.as<wire::Probe>() != nullptr || is_retransmission(s);
      });
  if (is_retransmission(probe)) return;
  equal_hex("destination QPN of the probe", probe.bth().dest_qpn, Duel::kQpn);
  equal_hex("its PSN, which is reserved,", probe.bth().psn.value(), 0);
}

constexpr Test kTests[] = {
    {.id = "wire.loss.timeout",
     .clause = "MRC 7.4.1",
     .certainty = Certainty::kReaders,
     .what = "an unacknowledged packet is retransmitted with rtx = 1 and its PSN",
     .body = timeout_retransmits},
    {.id = "wire.loss.same",
     .clause = "MRC 7.4",
     .certainty = Certainty::kReaders,
     .what = "a retransmission has the same headers and payload",
     .body = retransmission_is_equal},
    {.id = "wire.loss.other-ev",
     .clause = "MRC 7.4; paper 2.1",
     .certainty = Certainty::kPaper,
     .level = Level::kShould,
     .what = "a retransmission takes another EV",
     .body = retransmission_uses_other_ev},
    {.id = "wire.loss.hole",
     .clause = "MRC 7.4.5",
     .certainty = Certainty::kReaders,
     .what = "a hole below selectively acknowledged packets is retransmitted, and the message "
             "completes",
     .body = hole_is_retransmitted},
    {.id = "wire.loss.only-missing",
     .clause = "MRC 7.4.5",
     .certainty = Certainty::kReaders,
     .what = "packets that a bitmap acknowledged are not retransmitted",
     .body = only_missing_is_retransmitted},
    {.id = "wire.nack.trimmed",
     .clause = "MRC 7.4.4, Table 7-3: 0x01",
     .certainty = Certainty::kReaders,
     .what = "a NACK for a trimmed packet causes its retransmission at once",
     .body = [](Session& s) { nack_retransmits(s, wire::NackReason::kTrimmed); }},
    {.id = "wire.nack.trimmed-last-hop",
     .clause = "MRC 7.4.4, Table 7-3: 0x02",
     .certainty = Certainty::kReaders,
     .what = "a NACK for a packet trimmed at the last hop causes its retransmission at once",
     .body = [](Session& s) { nack_retransmits(s, wire::NackReason::kTrimmedLastHop); }},
    {.id = "wire.nack.no-bitmap",
     .clause = "MRC 7.4.4, Table 7-3: 0x06",
     .certainty = Certainty::kReaders,
     .what = "a NACK for lack of resources causes a retransmission after a while",
     .body = [](Session& s) { nack_retransmits(s, wire::NackReason::kNoBitmap); }},
    {.id = "wire.nack.no-buffer",
     .clause = "MRC 7.4.4, Table 7-3: 0x07",
     .certainty = Certainty::kReaders,
     .what = "a NACK for lack of packet buffers causes a retransmission after a while",
     .body = [](Session& s) { nack_retransmits(s, wire::NackReason::kNoPacketBuffer); }},
    {.id = "wire.loss.transport-ack",
     .clause = "MRC 6.3 and 7.4.1, completion and its timer",
     .certainty = Certainty::kOurs,
     .what = "after a lost Transport ACK the last packet is retransmitted, and the write completes",
     .body = lost_transport_ack},
    {.id = "wire.loss.sack",
     .clause = "MRC 7.4.1",
     .certainty = Certainty::kOurs,
     .what = "after a lost SACK the write still completes",
     .body = lost_sack},
    {.id = "wire.loss.exhausted",
     .clause = "mrc.h: MRC_QP_RETRY_CNT",
     .what = "exhausted retries: RETRY_EXC_ERR, flushes, ERR",
     .body = exhausted_retries_fail_qp},
    {.id = "wire.loss.patient",
     .clause = "mrc.h: MRC_QP_RETRY_CNT",
     .what = "30 ms of silence at a timeout of 1 ms fail no QP with default retries",
     .body = short_silence_fails_nothing},
    {.id = "wire.loss.tail",
     .clause = "MRC 7.4.6",
     .certainty = Certainty::kReaders,
     .level = Level::kShould,
     .what = "an unacknowledged tail causes a probe or a retransmission",
     .body = tail_is_probed},
};

}  // namespace

std::span<const Test> wire_loss_tests() { return kTests; }

}  // namespace weft::conformance
