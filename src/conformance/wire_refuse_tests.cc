// Packets that the device must refuse as responder: for memory that the peer may not write, too
// large, trimmed, or outside the window.
#include "conformance/duel.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

using wire::AckSyndrome;
using wire::Opcode;
using Piece = Duel::Piece;

bool is_nak(const ReceivedPacket& seen) {
  const auto* const ack = seen.as<wire::TransportAck>();
  return ack != nullptr && ack->syndrome != AckSyndrome::kAck;
}

// The device must send a NAK with this syndrome, place nothing, and bring the QP to ERR.
void refused_with_nak(Session& session, const Piece& piece, AckSyndrome syndrome) {
  Duel duel(session);
  std::memset(duel.end.memory.data(), 0x77, duel.end.memory.size());
  duel.send(piece);
  const ReceivedPacket seen = duel.next_where("a NAK", is_nak);
  equal_hex("syndrome", static_cast<std::uint32_t>(seen.as<wire::TransportAck>()->syndrome),
            static_cast<std::uint32_t>(syndrome));
  equal_hex("PSN of the NAK", seen.bth().psn.value(), duel.psn(0).value());
  for (const std::uint8_t b : duel.end.memory) equal_hex("memory", b, 0x77);
  duel.end.expect_qp_state(IBV_QPS_ERR);
}

void out_of_bounds(Session& session) {
  refused_with_nak(session, {.to = (1 << 20) - 8, .size = 16}, AckSyndrome::kNakRemoteAccess);
}

// A NAK may be lost, so the device must send it again for every later packet.
void nak_is_repeated(Session& session) {
  Duel duel(session);
  duel.send({.size = 16, .rkey = 1});
  duel.next_where("a NAK", is_nak);
  duel.send({.psn = 1, .size = 16});
  const ReceivedPacket seen = duel.next_where("the NAK again", is_nak);
  equal_hex("its PSN", seen.bth().psn.value(), duel.psn(0).value());
}

void too_large(Session& session) {
  Duel duel(session);
  std::memset(duel.end.memory.data(), 0x77, 8192);
  duel.send({.size = 2048});
  duel.next_where("a NAK or NACK of a packet above the path MTU", [](const ReceivedPacket& s) {
    return is_nak(s) || s.as<wire::Nack>() != nullptr;
  });
  equal_hex("memory", duel.end.memory[0], 0x77);
}

void no_receive(Session& session) {
  Duel duel(session);
  duel.send({.opcode = Opcode::kWriteOnlyImm, .size = 16, .immediate = 1});
  const ReceivedPacket seen = duel.next_where("a NAK", is_nak);
  duel.end.expect_qp_state(IBV_QPS_ERR);
  equal_hex("destination", seen.bth().dest_qpn, Duel::kQpn);
}

// Three immediates wait above a hole, but max_wimm_dest is two.
void excess_immediate_is_refused(Session& session) {
  Duel duel(session, {.max_wimm_dest = 2});
  for (std::uint64_t i = 0; i < 8; ++i) duel.end.receive(i);
  for (std::uint16_t i = 1; i <= 3; ++i)
    duel.send({.psn = i,
               .opcode = Opcode::kWriteOnlyImm,
               .size = 16,
               .msn = i,
               .rqmsn = static_cast<std::uint16_t>(i - 1),
               .immediate = i});
  duel.next_where("a NAK", is_nak);
}

// --- trimming

struct Trimmed {
  Duel duel;
  explicit Trimmed(Session& session) : duel(session) {
    if ((duel.host.attr.cap & MRC_DEVICE_CAP_TRIM_NACK) == 0)
      skip("the device does not answer trimmed packets (no CAP_TRIM_NACK)");
  }
  // Sends a packet as a switch trims it: the first `keep` bytes, with another DSCP.
  void send(std::uint8_t dscp, std::size_t keep) {
    duel.send({.size = 1024, .timestamp = 0x4321}, {.sender = 1, .dscp = dscp, .cut = keep});
  }
};

void trimmed_packet_gets_nack(Session& session, bool last_hop, std::size_t keep) {
  Trimmed in(session);
  const Options& options = session.options();
  std::memset(in.duel.end.memory.data(), 0x77, 2048);
  in.send(last_hop ? options.dscp_trimmed_last_hop : options.dscp_trimmed, keep);
  const ReceivedPacket seen = in.duel.next_nack();
  const auto& nack = *seen.as<wire::Nack>();
  equal_hex("nack_reason", static_cast<std::uint32_t>(nack.reason), last_hop ? 2 : 1);
  equal_hex("nack_psn", nack.psn.value(), in.duel.psn(0).value());
  equal_hex("BTH.psn: nack_psn too,", seen.bth().psn.value(), in.duel.psn(0).value());
  equal_hex("destination: the requestor's QPN,", seen.bth().dest_qpn, Duel::kQpn);
  equal_hex("memory", in.duel.end.memory[0], 0x77);
}

void nack_echoes_packet(Session& session) {
  Trimmed in(session);
  in.send(session.options().dscp_trimmed, 36);
  const ReceivedPacket seen = in.duel.next_nack();
  const auto& nack = *seen.as<wire::Nack>();
  equal_hex("entropy: that of the packet,", nack.entropy, in.duel.tester.entropy_of({.sender = 1}));
  equal_hex("tx_timestamp reflected", nack.echo.ticks, 0x4321);
  equal("cc_type", int{nack.cc_type}, 2);
}

void retransmission_is_placed(Session& session) {
  Trimmed in(session);
  in.send(session.options().dscp_trimmed, 36);
  in.duel.next_nack();
  in.duel.send({.size = 1024, .seed = 6, .rtx = true});
  in.duel.next_where("a SACK that covers it", [&](const ReceivedPacket& s) {
    return s.as<wire::Sack>() != nullptr && s.as<wire::Sack>()->cack == in.duel.psn(0);
  });
  is_pattern(in.duel.end.memory.data(), 1024, 6);
}

// The whole packet arrived before the trimmed copy of it.
void trimmed_duplicate_gets_sack(Session& session) {
  Trimmed in(session);
  in.duel.send({.size = 1024});
  in.duel.next_transport_ack();
  in.send(session.options().dscp_trimmed, 36);
  const ReceivedPacket seen = in.duel.next_where("an answer", [](const ReceivedPacket& s) {
    return s.as<wire::Sack>() != nullptr || s.as<wire::Nack>() != nullptr;
  });
  holds(seen.as<wire::Sack>() != nullptr, "a SACK: it is there already", "a NACK");
}

// --- the window

void psn_beyond_window_is_ignored(Session& session) {
  Duel duel(session, {.mpr_dest = 1});
  std::memset(duel.end.memory.data(), 0x77, 64);
  duel.send({.psn = 128, .size = 16});
  duel.none_where("acknowledgement of a PSN beyond the window", milliseconds(60),
                  [](const ReceivedPacket& s) {
                    return s.as<wire::Sack>() != nullptr && s.as<wire::Sack>()->ooo_count > 0;
                  });
  equal_hex("memory", duel.end.memory[0], 0x77);
  equal("state", static_cast<int>(duel.end.state()), static_cast<int>(IBV_QPS_RTS));
  duel.expect_still_works(0);
}

void last_psn_of_window_is_placed(Session& session) {
  Duel duel(session, {.mpr_dest = 1});
  duel.send({.psn = 127, .size = 16, .seed = 8});
  duel.next_where("a SACK that reports the last PSN of the window", [](const ReceivedPacket& s) {
    return s.as<wire::Sack>() != nullptr && s.as<wire::Sack>()->ooo_count == 1;
  });
  is_pattern(duel.end.memory.data(), 16, 8);
}

void psn_beyond_window_gets_nack(Session& session) {
  Duel duel(session, {.mpr_dest = 1});
  duel.send({.psn = 500, .size = 16});
  const ReceivedPacket seen = duel.next_nack();
  equal_hex("nack_reason", static_cast<std::uint32_t>(seen.as<wire::Nack>()->reason), 0x0b);
}

#define WEFT_NETH "MRC 7.5.3, Tables 7-16 and 7-17 (NETH)"
constexpr Test kTests[] = {
    {.id = "wire.refuse.rkey",
     .clause = "IBA 9.9, AETH 0x62",
     .certainty = Certainty::kReaders,
     .what = "an rkey of no region: NAK 0x62, nothing placed, ERR",
     .body =
         [](Session& s) {
           refused_with_nak(s, {.size = 16, .rkey = 0x13371337}, AckSyndrome::kNakRemoteAccess);
         }},
    {.id = "wire.refuse.bounds",
     .clause = "IBA 9.9, AETH 0x62",
     .certainty = Certainty::kReaders,
     .what = "a payload that exceeds its region: NAK 0x62, nothing placed, ERR",
     .body = out_of_bounds},
    {.id = "wire.refuse.nak-again",
     .clause = "MRC 6.3, semantic layer",
     .certainty = Certainty::kOurs,
     .what = "a NAK is repeated for later packets, because the first may be lost",
     .body = nak_is_repeated},
    {.id = "wire.refuse.too-large",
     .clause = "IBA 9.7.4, payload above the path MTU",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "a payload above the path MTU is refused and not placed",
     .body = too_large},
    {.id = "wire.refuse.no-receive",
     .clause = "MRC: no RNR",
     .certainty = Certainty::kReaders,
     .what = "an immediate without a receive: NAK, ERR",
     .body = no_receive},
    {.id = "wire.refuse.wimm",
     .clause = "mrc.h: MRC_QP_MAX_WIMM_DEST; MRC 6.3, semantic layer",
     .certainty = Certainty::kReaders,
     .what = "more immediates in flight than max_wimm_dest: NAK",
     .body = excess_immediate_is_refused},
    {.id = "wire.trim.nack",
     .clause = WEFT_NETH,
     .certainty = Certainty::kReaders,
     .what = "a trimmed packet is answered with NACK 0x01 and not placed",
     .body = [](Session& s) { trimmed_packet_gets_nack(s, false, 36); }},
    {.id = "wire.trim.last-hop",
     .clause = WEFT_NETH,
     .certainty = Certainty::kReaders,
     .what = "a packet trimmed at the last hop is answered with NACK 0x02",
     .body = [](Session& s) { trimmed_packet_gets_nack(s, true, 36); }},
    {.id = "wire.trim.bth-only",
     .clause = "MRC, trimming; UET",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "a packet trimmed to its BTH is still answered",
     .body = [](Session& s) { trimmed_packet_gets_nack(s, false, 16); }},
    {.id = "wire.trim.echo",
     .clause = WEFT_NETH,
     .certainty = Certainty::kReaders,
     .what = "the NACK reflects EV and timestamp, and has cc_type 2",
     .body = nack_echoes_packet},
    {.id = "wire.trim.then-whole",
     .clause = "MRC 7.5.3",
     .certainty = Certainty::kReaders,
     .what = "the retransmission of a trimmed packet is placed",
     .body = retransmission_is_placed},
    {.id = "wire.trim.duplicate",
     .clause = "MRC 7.5.3",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "a trimmed copy of a received packet is answered with a SACK",
     .body = trimmed_duplicate_gets_sack},
    {.id = "wire.window.beyond",
     .clause = "MRC 6.3.1, rule 6",
     .certainty = Certainty::kReaders,
     .what = "a PSN beyond the window is neither placed nor acknowledged, and does no harm",
     .body = psn_beyond_window_is_ignored},
    {.id = "wire.window.last",
     .clause = "MRC 6.3.1",
     .certainty = Certainty::kReaders,
     .what = "the last PSN of the window is placed",
     .body = last_psn_of_window_is_placed},
    {.id = "wire.window.nack",
     .clause = "MRC Table 7-3: 0x0B",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "a PSN beyond the window is answered with NACK 0x0B",
     .body = psn_beyond_window_gets_nack},
};

}  // namespace

std::span<const Test> wire_refuse_tests() { return kTests; }

}  // namespace weft::conformance
