// SACKs and Transport ACKs of the device as responder, field by field.
#include <bit>

#include "conformance/duel.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

using wire::Opcode;

const wire::Sack& sack_of(const ReceivedPacket& seen) { return *seen.as<wire::Sack>(); }
std::uint32_t byte(const ReceivedPacket& seen, std::size_t at) {
  return std::to_integer<std::uint32_t>(seen.raw[at]);
}

// Sends one packet in order and checks its SACK.
void first_sack(Session& session, void (*check)(Duel&, const ReceivedPacket&)) {
  Duel duel(session);
  duel.send({.size = 500, .timestamp = 0x7a5c}, {.plane = 0, .sender = 2});
  check(duel, duel.next_sack());
}

void goes_to_requestor_qp(Duel&, const ReceivedPacket& seen) {
  equal_hex("destination: the requestor's QPN,", seen.bth().dest_qpn, Duel::kQpn);
}
void covers_packet(Duel& duel, const ReceivedPacket& seen) {
  equal_hex("cack_psn", sack_of(seen).cack.value(), duel.psn(0).value());
  equal_hex("BTH.psn: cack_psn too,", seen.bth().psn.value(), duel.psn(0).value());
}
void names_trigger(Duel&, const ReceivedPacket& seen) {
  equal("ack_psn_offset of the newest packet", sack_of(seen).trigger_offset, 0);
}
void echoes_ev(Duel& duel, const ReceivedPacket& seen) {
  equal_hex("entropy: that of the packet,", sack_of(seen).entropy,
            duel.tester.entropy_of({.sender = 2}));
}
void echoes_timestamp(Duel&, const ReceivedPacket& seen) {
  equal_hex("tx_timestamp reflected", sack_of(seen).echo.ticks, 0x7a5c);
}
void reports_no_holes(Duel&, const ReceivedPacket& seen) {
  equal("ooo_count", sack_of(seen).ooo_count, 0);
  equal_hex("sack_bitmap", sack_of(seen).bitmap, 0);
}
void mark_is_clear(Duel&, const ReceivedPacket& seen) {
  equal("m of an unmarked packet", static_cast<int>(sack_of(seen).mark), 0);
}
void probe_bit_is_clear(Duel&, const ReceivedPacket& seen) {
  holds(!sack_of(seen).answers_probe, "pr = 0", "pr = 1");
}
void mpr_within_window(Duel& duel, const ReceivedPacket& seen) {
  mrc_qp_attr attr{};
  works("mrc_query_qp",
        duel.end.library.mrc_query_qp(duel.end.qp, nullptr, 0, &attr, MRC_QP_MPR_DEST, nullptr));
  // mpr == 0 means that the window is unchanged. A value above mpr_dest would promise more than was
  // agreed.
  holds(sack_of(seen).mpr <= attr.mpr.mpr_dest, fmt::format("mpr of at most {}", attr.mpr.mpr_dest),
        text_of_value(sack_of(seen).mpr));
}
void counts_received_bytes(Duel&, const ReceivedPacket& seen) {
  // Bytes: UDP header 8, headers from BTH to RETH 36, payload 500, ICRC 4, and a fixed 40.
  equal("rcvd_bytes in units of 256, rounded up,", sack_of(seen).rcvd_bytes_256,
        (8u + 36 + 500 + 4 + 40 + 255) / 256);
}
void fixed_fields_are_zero(Duel&, const ReceivedPacket& seen) {
  equal_hex("type and nh", byte(seen, 12), 0);
  equal_hex("cc_type", byte(seen, 12 + 16) >> 4, 0);
  equal_hex("byte 12 of SETH", byte(seen, 12 + 12), 0);
}
void icrc_matches(Duel& duel, const ReceivedPacket& seen) {
  holds(duel.cover == IcrcCover::kFull ? seen.icrc_full : seen.icrc_headers, "an ICRC that matches",
        "it does not");
}
void has_control_dscp(Duel& duel, const ReceivedPacket& seen) {
  equal("DSCP of control packets", seen.traffic_class >> 2,
        int{duel.session.options().dscp_control});
}

// PSNs 0, 2, 3 and 5 have arrived.
void reports_holes(Session& session) {
  Duel duel(session);
  for (const std::int32_t psn : {0, 2, 3, 5}) duel.send({.psn = psn, .to = 1024, .size = 64});
  const ReceivedPacket seen =
      duel.next_where("a SACK with three PSNs above the edge", [&](const ReceivedPacket& s) {
        return s.as<wire::Sack>() != nullptr && sack_of(s).ooo_count == 3;
      });
  const wire::Sack& sack = sack_of(seen);
  equal_hex("cack_psn", sack.cack.value(), duel.psn(0).value());
  for (int i = 0; i < 64; ++i) {
    if ((sack.bitmap >> i & 1) == 0) continue;
    const std::int32_t at = (sack.cack + sack.bitmap_offset + i).since(duel.psn(0));
    holds(at == 0 || at == 2 || at == 3 || at == 5, "set bits for received PSNs only",
          fmt::format("a bit for PSN {} of the message", at));
  }
}

// The SACKs together must report every received PSN above the cumulative PSN.
void reports_every_psn(Session& session) {
  Duel duel(session);
  std::uint64_t reported = 0;
  for (int round = 0; round < 20 && reported != 0b101100; ++round) {
    if (round == 0) {
      for (const std::int32_t psn : {0, 2, 3, 5}) duel.send({.psn = psn, .to = 1024, .size = 64});
    } else {
      duel.send({.psn = 5, .to = 1024, .size = 64, .rtx = true});
    }
    const ReceivedPacket seen = duel.next_sack();
    for (int i = 0; i < 64; ++i) {
      if ((sack_of(seen).bitmap >> i & 1) == 0) continue;
      const std::int32_t at =
          (sack_of(seen).cack + sack_of(seen).bitmap_offset + i).since(duel.psn(0));
      if (at > 0 && at < 64) reported |= 1ull << at;
    }
  }
  equal_hex("PSNs above the edge that SACKs report, as bits,", reported, 0b101100);
}

void cack_moves_after_hole(Session& session) {
  Duel duel(session);
  for (const std::int32_t psn : {1, 2, 0}) duel.send({.psn = psn, .to = 1024, .size = 64});
  const ReceivedPacket seen =
      duel.next_where("a SACK with the edge behind all", [&](const ReceivedPacket& s) {
        return s.as<wire::Sack>() != nullptr && sack_of(s).cack == duel.psn(2);
      });
  equal("ooo_count", sack_of(seen).ooo_count, 0);
}

// --- what triggers a SACK
// A device may send its first SACK without a trigger. One packet before the test makes the device
// send that SACK.
void consume_first_sack(Duel& duel) {
  duel.send({.size = 16});
  duel.next_transport_ack();
  duel.none_where("further packets", milliseconds(20), [](const ReceivedPacket&) { return false; });
}
void sack_on_request(Session& session) {
  Duel duel(session);
  consume_first_sack(duel);
  duel.send({.psn = 1, .size = 16, .ack_request = true});
  duel.next_where("a SACK for A = 1", [&](const ReceivedPacket& s) {
    return s.as<wire::Sack>() != nullptr && sack_of(s).cack == duel.psn(1);
  });
}
void sack_on_mark(Session& session) {
  Duel duel(session);
  consume_first_sack(duel);
  duel.send({.psn = 1, .size = 16, .ack_request = false}, {.ecn = 3});
  const ReceivedPacket seen = duel.next_where("a SACK for a CE mark", [&](const ReceivedPacket& s) {
    return s.as<wire::Sack>() != nullptr && sack_of(s).cack == duel.psn(1);
  });
  equal("m: SKIP_ONCE,", static_cast<int>(sack_of(seen).mark), 1);
}
void sack_on_rtx(Session& session) {
  Duel duel(session);
  consume_first_sack(duel);
  duel.send({.psn = 1, .size = 16, .ack_request = false, .rtx = true});
  const ReceivedPacket seen = duel.next_where("a SACK for rtx = 1", [&](const ReceivedPacket& s) {
    return s.as<wire::Sack>() != nullptr && sack_of(s).cack == duel.psn(1);
  });
  holds(seen.bth().rtx, "rtx echoed in the SACK", "clear");
}
void sack_on_bytes(Session& session) {
  Duel duel(session);
  consume_first_sack(duel);
  for (std::int32_t i = 1; i <= 100; ++i)
    duel.send({.psn = i,
               .opcode = i == 1 ? Opcode::kWriteFirst : Opcode::kWriteMiddle,
               .to = 1024,
               .size = 1024,
               .message_size = 1 << 20,
               .ack_request = false});
  duel.next_where("a SACK within 100 KiB that ask for none", [&](const ReceivedPacket& s) {
    return s.as<wire::Sack>() != nullptr && sack_of(s).cack.since(duel.psn(1)) >= 0;
  });
}

// --- Transport ACK

void transport_ack_fields(Session& session) {
  Duel duel(session);
  duel.send({.size = 16});
  const ReceivedPacket seen = duel.next_transport_ack();
  equal_hex("AETH: ACK with credits 0x1F,", byte(seen, 12), 0x1f);
  equal_hex("PSN", seen.bth().psn.value(), duel.psn(0).value());
  equal("msn: messages completed,", seen.as<wire::TransportAck>()->msn, 1u);
  equal_hex("destination: the requestor's QPN,", seen.bth().dest_qpn, Duel::kQpn);
}
void transport_ack_counts_messages(Session& session) {
  Duel duel(session);
  for (std::int32_t i = 0; i < 5; ++i)
    duel.send({.psn = i, .size = 16, .msn = static_cast<std::uint16_t>(i)});
  const ReceivedPacket seen =
      duel.next_where("a Transport ACK of the fifth", [&](const ReceivedPacket& s) {
        return s.as<wire::TransportAck>() != nullptr && s.bth().psn == duel.psn(4);
      });
  equal("msn", seen.as<wire::TransportAck>()->msn, 5u);
}
void transport_ack_waits_for_hole(Session& session) {
  Duel duel(session);
  duel.send({.psn = 1, .size = 16, .msn = 1});
  duel.none_where("Transport ACK over a hole", milliseconds(60),
                  [](const ReceivedPacket& s) { return s.as<wire::TransportAck>() != nullptr; });
  duel.send({.psn = 0, .size = 16});
  const ReceivedPacket seen = duel.next_transport_ack();
  equal_hex("PSN of the one ACK", seen.bth().psn.value(), duel.psn(1).value());
}
void transport_ack_is_repeated(Session& session) {
  Duel duel(session);
  duel.send({.size = 16});
  duel.next_transport_ack();
  duel.send({.size = 16, .rtx = true});
  const ReceivedPacket seen = duel.next_transport_ack();
  equal_hex("PSN", seen.bth().psn.value(), duel.psn(0).value());
  equal("msn, which counted it once,", seen.as<wire::TransportAck>()->msn, 1u);
}

#define WEFT_SETH "MRC 7.5.5.5, Tables 7-14 and 7-15 (SETH)"
#define WEFT_GEN "MRC 7.5.2, SACK generation"
#define WEFT_FIRST(id_, clause_, what_, check_)                                    \
  {                                                                                \
    .id = id_, .clause = clause_, .certainty = Certainty::kReaders, .what = what_, \
    .body = [](Session& s) { first_sack(s, check_); }                              \
  }
#define WEFT_TEST(id_, clause_, what_, body_) \
  { .id = id_, .clause = clause_, .certainty = Certainty::kReaders, .what = what_, .body = body_ }
constexpr Test kTests[] = {
    WEFT_FIRST("wire.sack.dest-qp", "MRC Table 7-6", "a SACK goes to the requestor's QP",
               goes_to_requestor_qp),
    WEFT_FIRST("wire.sack.cumulative", "MRC Table 7-6",
               "cack_psn and BTH.psn are the PSN up to which all is there", covers_packet),
    WEFT_FIRST("wire.sack.trigger", WEFT_SETH,
               "ack_psn_offset names the packet that triggered the SACK", names_trigger),
    WEFT_FIRST("wire.sack.entropy", "MRC 7.5.2.1", "the EV of the triggering packet is reflected",
               echoes_ev),
    WEFT_FIRST("wire.sack.timestamp", "MRC 7.5.5.4, Tables 7-12 and 7-13 (CC_STATE)",
               "the timestamp of the triggering packet is reflected", echoes_timestamp),
    WEFT_FIRST("wire.sack.no-holes", "MRC 7.5.2.2",
               "without holes there are no PSNs above the cumulative PSN", reports_no_holes),
    WEFT_FIRST("wire.sack.unmarked", WEFT_SETH, "m is 0 for an unmarked packet", mark_is_clear),
    WEFT_FIRST("wire.sack.no-probe", WEFT_SETH, "pr is 0 when no probe is answered",
               probe_bit_is_clear),
    {.id = "wire.sack.mpr",
     .clause = WEFT_SETH,
     .certainty = Certainty::kReaders,
     .level = Level::kShould,
     .what = "mpr is at most the QP's window (it has an effect only if DYNAMIC_MPR is agreed)",
     .body = [](Session& s) { first_sack(s, mpr_within_window); }},
    WEFT_FIRST("wire.sack.rcvd-bytes", "MRC 8.3.1, nominal packet size",
               "rcvd_bytes counts UDP length + 40 in units of 256, rounded up",
               counts_received_bytes),
    WEFT_FIRST("wire.sack.fixed-fields", WEFT_SETH, "type, nh and cc_type are 0",
               fixed_fields_are_zero),
    WEFT_FIRST("wire.sack.icrc", "RoCEv2, ICRC", "a SACK's ICRC matches", icrc_matches),
    {.id = "wire.sack.dscp",
     .clause = "MRC 7.5.5.2, traffic classes",
     .certainty = Certainty::kReaders,
     .level = Level::kShould,
     .what = "SACKs have the DSCP of control packets (--dscp-control)",
     .body = [](Session& s) { first_sack(s, has_control_dscp); }},
    WEFT_TEST(
        "wire.sack.holes", "MRC 7.5.2.2",
        "ooo_count counts the PSNs received above the cumulative PSN, and only these have bits",
        reports_holes),
    WEFT_TEST("wire.sack.all-reported", "MRC 7.5.2.2",
              "every PSN above the edge is reported, in one SACK or several", reports_every_psn),
    WEFT_TEST("wire.sack.edge", WEFT_GEN,
              "when a hole closes, the cumulative PSN moves over all PSNs received above it",
              cack_moves_after_hole),
    WEFT_TEST("wire.sack.on-request", WEFT_GEN, "A = 1 is answered with a SACK", sack_on_request),
    WEFT_TEST("wire.sack.on-mark", WEFT_GEN, "a CE mark is answered with a SACK with m = 1",
              sack_on_mark),
    WEFT_TEST("wire.sack.on-rtx", WEFT_GEN,
              "a retransmission is answered with a SACK that echoes rtx", sack_on_rtx),
    WEFT_TEST("wire.sack.on-bytes", WEFT_GEN,
              "a stream that asks for nothing is acknowledged within 100 KiB", sack_on_bytes),
    WEFT_TEST("wire.tack.fields", "MRC 6.2.2, AETH",
              "a Transport ACK has syndrome 0x1F, PSN and msn", transport_ack_fields),
    WEFT_TEST("wire.tack.msn", "MRC 6.2.2, AETH", "its msn counts completed messages",
              transport_ack_counts_messages),
    WEFT_TEST("wire.tack.hole", "MRC 6.3, semantic layer", "no Transport ACK passes a hole",
              transport_ack_waits_for_hole),
    WEFT_TEST("wire.tack.again", "MRC 6.3.1, PSN checks",
              "a duplicate below the edge is answered with a Transport ACK",
              transport_ack_is_repeated),
};

}  // namespace

std::span<const Test> wire_sack_tests() { return kTests; }

}  // namespace weft::conformance
