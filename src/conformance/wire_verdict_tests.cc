// Packets of the responder that complete a write, packets that fail it, and packets that must have
// no effect on it.
#include "conformance/duel.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

void both_acks_complete(Session& session) {
  Duel duel(session);
  duel.post(100);
  duel.accept(duel.next_write(), 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
}

void sack_alone_completes_nothing(Session& session) {
  Duel duel(session);
  duel.post(100);
  const ReceivedPacket write = duel.next_write();
  duel.acknowledge(write, write.bth().psn);
  duel.end.expect_no_completion(duel.end.send_cq, milliseconds(100));
  duel.transport_ack(write.bth().psn, 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
}

// One Transport ACK covers three messages: it must complete all three, in order.
void one_ack_covers_messages(Session& session) {
  Duel duel(session);
  for (std::uint64_t id = 1; id <= 3; ++id) duel.post(100, id);
  const auto packets = duel.message(3);
  duel.accept(packets[2], 3);
  for (std::uint64_t id = 1; id <= 3; ++id) completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, id);
}

// A Transport ACK covers two of three messages: the third must not complete.
void later_message_waits(Session& session) {
  Duel duel(session);
  for (std::uint64_t id = 1; id <= 3; ++id) duel.post(100, id);
  const auto packets = duel.message(3);
  duel.acknowledge(packets[2], packets[2].bth().psn);
  duel.transport_ack(packets[1].bth().psn, 2);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 2);
  duel.end.expect_no_completion(duel.end.send_cq, milliseconds(100));
}

void nak_fails_write(Session& session, wire::AckSyndrome syndrome, ibv_wc_status status) {
  Duel duel(session);
  duel.post(100, 1);
  duel.post(100, 2);
  const auto packets = duel.message(2);
  duel.transport_nak(packets[0].bth().psn, syndrome);
  completed_as(duel.end.wait_send(), status, 1);
  completed_as(duel.end.wait_send(), IBV_WC_WR_FLUSH_ERR, 2);
  equal("state", static_cast<int>(duel.end.state()), static_cast<int>(IBV_QPS_ERR));
}

void nack_fails_qp(Session& session) {
  Duel duel(session);
  duel.post(100);
  duel.nack(duel.next_write(), wire::NackReason::kUnexpectedEvent);
  const ibv_wc wc = duel.end.wait_send();
  holds(wc.status != IBV_WC_SUCCESS, "an error", "SUCCESS");
  equal("state", static_cast<int>(duel.end.state()), static_cast<int>(IBV_QPS_ERR));
}

// `say` sends a packet that must have no effect. Afterwards the write must complete normally.
void no_effect(Session& session, void (*say)(Duel&, const ReceivedPacket&)) {
  Duel duel(session);
  duel.post(100);
  const ReceivedPacket write = duel.next_write();
  say(duel, write);
  duel.end.expect_no_completion(duel.end.send_cq, milliseconds(50));
  equal("state", static_cast<int>(duel.end.state()), static_cast<int>(IBV_QPS_RTS));
  duel.accept(write, 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
}

void ack_of_unsent(Duel& duel, const ReceivedPacket& write) {
  duel.acknowledge(write, write.bth().psn + 1000);
  duel.transport_ack(write.bth().psn + 1000, 500);
}
void nak_of_unsent(Duel& duel, const ReceivedPacket& write) {
  duel.transport_nak(write.bth().psn + 1000, wire::AckSyndrome::kNakRemoteAccess);
}
void nak_of_old_psn(Duel& duel, const ReceivedPacket& write) {
  duel.transport_nak(write.bth().psn - 5, wire::AckSyndrome::kNakRemoteAccess);
}
void nack_of_unsent(Duel& duel, const ReceivedPacket& write) {
  ReceivedPacket other = write;
  other.packet.bth.psn = write.bth().psn + 1000;
  duel.nack(other, wire::NackReason::kTrimmed);
}
void unknown_nack_fails_nothing(Duel& duel, const ReceivedPacket& write) {
  duel.nack(write, static_cast<wire::NackReason>(0x55));
}
void old_sack_is_ignored(Duel& duel, const ReceivedPacket& write) {
  duel.acknowledge(write, write.bth().psn - 1, 0);
}
void damaged_nak_is_ignored(Duel& duel, const ReceivedPacket& write) {
  wire::Packet nak_fails_write{
      .bth = {.opcode = wire::Opcode::kTransportAck,
              .dest_qpn = duel.end.qpn(),
              .psn = write.bth().psn},
      .body = wire::TransportAck{.syndrome = wire::AckSyndrome::kNakRemoteAccess}};
  duel.tester.send(nak_fails_write, {}, {.corrupt_icrc = true});
}

// A device must ignore the PDC ids: responders of other vendors may set any value.
void pdcid_is_ignored(Session& session) {
  Duel duel(session);
  duel.post(100);
  const ReceivedPacket write = duel.next_write();
  wire::Packet packet = duel.sack(write.bth().psn);
  auto& sack = std::get<wire::Sack>(packet.body);
  sack.spdcid = 0x1111;
  sack.dpdcid = 0x2222;
  sack.echo = write.as<wire::Write>()->sent;
  sack.entropy = write.entropy();
  duel.tester.send(packet);
  duel.transport_ack(write.bth().psn, 1);
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
}

void credit_is_ignored(Session& session) {
  Duel duel(session);
  duel.post(100);
  const ReceivedPacket write = duel.next_write();
  duel.acknowledge(write, write.bth().psn);
  wire::Packet ack{.bth = {.opcode = wire::Opcode::kTransportAck,
                           .dest_qpn = duel.end.qpn(),
                           .psn = write.bth().psn},
                   .body = wire::TransportAck{.msn = 1}};
  duel.tester.send(ack, {},
                   // offset 12: MRC sends 0x1f here; in RC this field has a credit count
                   {.patch = {{12, 3}}});
  completed_as(duel.end.wait_send(), IBV_WC_SUCCESS, 1);
}

#define WEFT_ACK "MRC 6.2.2, AETH; MRC 6.3, semantic layer"
constexpr Test kTests[] = {
    {.id = "wire.ack.completes",
     .clause = WEFT_ACK,
     .certainty = Certainty::kReaders,
     .what = "SACK and Transport ACK complete a write",
     .body = both_acks_complete},
    {.id = "wire.ack.not-sack-alone",
     .clause = WEFT_ACK,
     .certainty = Certainty::kReaders,
     .what = "a SACK alone completes no write: it needs the Transport ACK",
     .body = sack_alone_completes_nothing},
    {.id = "wire.ack.cumulative",
     .clause = WEFT_ACK,
     .certainty = Certainty::kReaders,
     .what = "a Transport ACK covers every message up to its PSN",
     .body = one_ack_covers_messages},
    {.id = "wire.ack.not-beyond",
     .clause = WEFT_ACK,
     .certainty = Certainty::kReaders,
     .what = "a message above the PSN of a Transport ACK does not complete",
     .body = later_message_waits},
    {.id = "wire.nak.invalid",
     .clause = "IBA 9.9, AETH 0x61",
     .certainty = Certainty::kReaders,
     .what = "NAK 0x61 gives REM_INV_REQ_ERR, later requests are flushed",
     .body =
         [](Session& s) {
           nak_fails_write(s, wire::AckSyndrome::kNakInvalidRequest, IBV_WC_REM_INV_REQ_ERR);
         }},
    {.id = "wire.nak.access",
     .clause = "IBA 9.9, AETH 0x62",
     .certainty = Certainty::kReaders,
     .what = "NAK 0x62 gives REM_ACCESS_ERR, later requests are flushed",
     .body =
         [](Session& s) {
           nak_fails_write(s, wire::AckSyndrome::kNakRemoteAccess, IBV_WC_REM_ACCESS_ERR);
         }},
    {.id = "wire.nak.operational",
     .clause = "IBA 9.9, AETH 0x63",
     .certainty = Certainty::kReaders,
     .what = "NAK 0x63 gives REM_OP_ERR, later requests are flushed",
     .body =
         [](Session& s) {
           nak_fails_write(s, wire::AckSyndrome::kNakRemoteOperational, IBV_WC_REM_OP_ERR);
         }},
    {.id = "wire.nack.unexpected",
     .clause = "MRC 7.4.4, Table 7-3: 0x19",
     .certainty = Certainty::kReaders,
     .what = "NACK 0x19 fails the QP",
     .body = nack_fails_qp},
    {.id = "wire.ack.unsent",
     .clause = "MRC 7.5.5",
     .certainty = Certainty::kOurs,
     .what = "an acknowledgement of PSNs that were never sent has no effect",
     .body = [](Session& s) { no_effect(s, ack_of_unsent); }},
    {.id = "wire.nak.unsent",
     .clause = "MRC 7.5.5",
     .certainty = Certainty::kOurs,
     .what = "a NAK of a PSN that was never sent has no effect",
     .body = [](Session& s) { no_effect(s, nak_of_unsent); }},
    {.id = "wire.nak.old",
     .clause = "MRC 7.5.5",
     .certainty = Certainty::kOurs,
     .what = "a NAK of an old PSN has no effect",
     .body = [](Session& s) { no_effect(s, nak_of_old_psn); }},
    {.id = "wire.nack.unsent",
     .clause = "MRC 7.4.4",
     .certainty = Certainty::kOurs,
     .what = "a NACK of a PSN that was never sent has no effect",
     .body = [](Session& s) { no_effect(s, nack_of_unsent); }},
    {.id = "wire.nack.unknown",
     .clause = "MRC 7.4.4, Table 7-3",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "a NACK with an undefined reason fails no QP",
     .body = [](Session& s) { no_effect(s, unknown_nack_fails_nothing); }},
    {.id = "wire.sack.old",
     .clause = "MRC 7.4.5",
     .certainty = Certainty::kOurs,
     .what = "a SACK without new information has no effect",
     .body = [](Session& s) { no_effect(s, old_sack_is_ignored); }},
    {.id = "wire.nak.damaged",
     .clause = "RoCEv2, ICRC",
     .certainty = Certainty::kReaders,
     .what = "a NAK with a wrong ICRC has no effect",
     .body = [](Session& s) { no_effect(s, damaged_nak_is_ignored); }},
    {.id = "wire.sack.pdcid",
     .clause = "MRC 7.5.5.5, SETH",
     .certainty = Certainty::kOurs,
     .what = "spdcid and dpdcid of a SACK are ignored",
     .body = pdcid_is_ignored},
    {.id = "wire.ack.credit",
     .clause = "MRC 6.2.2, AETH: no credits",
     .certainty = Certainty::kOurs,
     .what = "the credit field of a Transport ACK is ignored",
     .body = credit_is_ignored},
};

}  // namespace

std::span<const Test> wire_verdict_tests() { return kTests; }

}  // namespace weft::conformance
