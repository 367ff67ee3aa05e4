// The header fields of WRITE packets that the device sends.
#include "conformance/duel.h"
#include "conformance/registry.h"
#include "wire/layout.h"

namespace weft::conformance {
namespace {

using wire::Opcode;

// Posts one message of `size` bytes at MTU 1024 and checks its packets in PSN order.
void message(Session& session, std::uint32_t size, std::optional<std::uint32_t> immediate,
             void (*check)(Duel&, const std::vector<ReceivedPacket>&)) {
  Duel duel(session);
  duel.post(size, 1, immediate, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
  const std::uint32_t packets = std::max(1u, (size + duel.mtu_bytes() - 1) / duel.mtu_bytes());
  check(duel, duel.message(packets));
}

const wire::Write& write_of(const ReceivedPacket& seen) { return *seen.as<wire::Write>(); }

void opcodes_are(const std::vector<ReceivedPacket>& packets,
                 std::initializer_list<Opcode> expected) {
  equal("packets", packets.size(), expected.size());
  std::size_t i = 0;
  for (const Opcode opcode : expected) {
    if (packets[i].bth().opcode != opcode)
      fail(fmt::format("packet {} is {}", i, wire::to_string(opcode)),
           std::string(wire::to_string(packets[i].bth().opcode)));
    ++i;
  }
}

void is_only(Duel&, const std::vector<ReceivedPacket>& p) { opcodes_are(p, {Opcode::kWriteOnly}); }
void is_only_imm(Duel&, const std::vector<ReceivedPacket>& p) {
  opcodes_are(p, {Opcode::kWriteOnlyImm});
  equal_hex("immediate", write_of(p[0]).immediate, 0xcafef00d);
}
void is_sequence(Duel&, const std::vector<ReceivedPacket>& p) {
  opcodes_are(
      p, {Opcode::kWriteFirst, Opcode::kWriteMiddle, Opcode::kWriteMiddle, Opcode::kWriteLast});
}
void is_sequence_imm(Duel&, const std::vector<ReceivedPacket>& p) {
  opcodes_are(
      p, {Opcode::kWriteFirst, Opcode::kWriteMiddle, Opcode::kWriteMiddle, Opcode::kWriteLastImm});
  equal_hex("immediate of the last", write_of(p[3]).immediate, 0xcafef00d);
}
void is_two(Duel&, const std::vector<ReceivedPacket>& p) {
  opcodes_are(p, {Opcode::kWriteFirst, Opcode::kWriteLast});
}

void psns_are_consecutive(Duel& duel, const std::vector<ReceivedPacket>& packets) {
  for (std::size_t i = 0; i < packets.size(); ++i)
    equal_hex("PSN", packets[i].bth().psn.value(),
              (Psn(duel.options.device_psn) + static_cast<std::int32_t>(i)).value());
}
void goes_to_peer_qp(Duel&, const std::vector<ReceivedPacket>& packets) {
  for (const ReceivedPacket& seen : packets)
    equal_hex("destination QPN", seen.bth().dest_qpn, Duel::kQpn);
}
void reth_addresses_match(Duel& duel, const std::vector<ReceivedPacket>& packets) {
  for (std::size_t i = 0; i < packets.size(); ++i)
    equal_hex("va: each packet's own,", write_of(packets[i]).va,
              duel.target.at + i * duel.mtu_bytes());
}
void reth_keys_match(Duel& duel, const std::vector<ReceivedPacket>& packets) {
  for (const ReceivedPacket& seen : packets)
    equal_hex("rkey", write_of(seen).rkey, duel.target.rkey);
}
void reth_lengths_match(Duel&, const std::vector<ReceivedPacket>& packets) {
  for (const ReceivedPacket& seen : packets)
    equal("dmalen: the whole message's,", write_of(seen).message_size, 3500u);
}
void message_numbers_match(Duel&, const std::vector<ReceivedPacket>& packets) {
  for (const ReceivedPacket& seen : packets)
    equal("msn: the same in every packet,", write_of(seen).msn, write_of(packets[0]).msn);
}
void packets_have_mtu_size(Duel& duel, const std::vector<ReceivedPacket>& packets) {
  for (std::size_t i = 0; i < packets.size(); ++i)
    equal("payload", packets[i].payload.size(),
          i + 1 < packets.size() ? duel.mtu_bytes() : 3500u - 3 * duel.mtu_bytes());
}
void bytes(Duel&, const std::vector<ReceivedPacket>& packets) {
  std::vector<std::uint8_t> whole;
  for (const ReceivedPacket& seen : packets) {
    const auto* const at = reinterpret_cast<const std::uint8_t*>(seen.payload.data());
    whole.insert(whole.end(), at, at + seen.payload.size());
  }
  equal("bytes", whole.size(), 3500u);
  is_pattern(whole.data(), whole.size(), 1);
}
void padding_is_right(Duel&, const std::vector<ReceivedPacket>& packets) {
  equal("pad of 5 bytes of payload", int{packets[0].bth().pad}, 3);
  equal("bytes of padding", packets[0].padding.size(), 3u);
  for (const std::byte b : packets[0].padding) equal("padding", std::to_integer<int>(b), 0);
}
void pkey_and_version_match(Duel&, const std::vector<ReceivedPacket>& packets) {
  for (const ReceivedPacket& seen : packets) {
    equal_hex("P_Key", seen.bth().pkey, 0xffff);
    equal_hex("TVer", std::to_integer<unsigned>(seen.raw[1]) & 0x0f, 0);
  }
}
void reserved_bits_are_zero(Duel&, const std::vector<ReceivedPacket>& packets) {
  for (const ReceivedPacket& seen : packets) {
    equal_hex("BTH byte 8, bits 6 and 3 to 0", std::to_integer<unsigned>(seen.raw[8]) & 0x4f, 0);
    if (!write_of(seen).has_timestamp) continue;
    equal_hex("TSETH bytes 2 and 3: ftype 1, the rest 0,",
              base::load16(seen.raw, 12 + 4 + 2) & 0x7fffu, 1);
  }
}
void icrc_matches(Duel& duel, const std::vector<ReceivedPacket>& packets) {
  for (const ReceivedPacket& seen : packets) {
    holds(duel.cover == IcrcCover::kFull ? seen.icrc_full : seen.icrc_headers,
          "an ICRC that matches", "it does not");
  }
}
void icrc_covers_payload(Duel&, const std::vector<ReceivedPacket>& packets) {
  for (const ReceivedPacket& seen : packets)
    holds(seen.icrc_full, "an ICRC over headers, payload and padding",
          seen.icrc_headers ? "it leaves the payload out" : "none that matches");
}
void packets_are_ect(Duel&, const std::vector<ReceivedPacket>& packets) {
  for (const ReceivedPacket& seen : packets)
    equal("ECN of data: ECT(0),", seen.traffic_class & 3, 2);
}
void last_packet_requests_ack(Duel&, const std::vector<ReceivedPacket>& packets) {
  holds(packets.back().bth().ack_request, "A on the last packet of available data", "it is clear");
}
void last_packet_is_solicited(Duel&, const std::vector<ReceivedPacket>& packets) {
  holds(packets.back().bth().solicited, "SE on the last packet", "it is clear");
}
void first_copies_have_no_rtx(Duel& duel, const std::vector<ReceivedPacket>& packets) {
  // message() drops retransmissions; the first packet that it returns must have the first PSN.
  equal_hex("PSN of the first copy", packets[0].bth().psn.value(), duel.options.device_psn);
}

#define WEFT_BTH "MRC 6.2.2, Tables 6-3 and 6-4 (BTH)"
#define WEFT_RETH "MRC 6.2.2, Table 6-5 (RETH)"
#define WEFT_METH "MRC 6.2.2, Tables 6-8 and 6-9 (METH)"
#define WEFT_TEST(id_, clause_, what_, size_, imm_, check_)                        \
  {                                                                                \
    .id = id_, .clause = clause_, .certainty = Certainty::kReaders, .what = what_, \
    .body = [](Session& s) { message(s, size_, imm_, check_); }                    \
  }
#define WEFT_SHOULD(id_, clause_, what_, size_, imm_, check_)                                \
  {                                                                                          \
    .id = id_, .clause = clause_, .certainty = Certainty::kReaders, .level = Level::kShould, \
    .what = what_, .body = [](Session& s) { message(s, size_, imm_, check_); }               \
  }
constexpr Test kTests[] = {
    WEFT_TEST("wire.write.only", "MRC 6.2.2, opcodes", "a message of one packet is 0xCA", 100, {},
              is_only),
    WEFT_TEST("wire.write.only-imm", "MRC 6.2.2, opcodes",
              "one packet with immediate is 0xCB and carries it", 100, 0xcafef00d, is_only_imm),
    WEFT_TEST("wire.write.zero", "MRC 6.2.2, opcodes", "a message of no bytes is one packet 0xCA",
              0, {}, is_only),
    WEFT_TEST("wire.write.first-last", "MRC 6.2.2, opcodes", "two packets are 0xC6, 0xC8", 1025, {},
              is_two),
    WEFT_TEST("wire.write.exactly-mtu", "MRC 6.2.2, opcodes",
              "a message of exactly one MTU is one packet", 1024, {}, is_only),
    WEFT_TEST("wire.write.sequence", "MRC 6.2.2, opcodes",
              "four packets are 0xC6, 0xC7, 0xC7, 0xC8", 3500, {}, is_sequence),
    WEFT_TEST("wire.write.sequence-imm", "MRC 6.2.2, opcodes",
              "with immediate the last is 0xC9 and carries it", 3500, 0xcafef00d, is_sequence_imm),
    WEFT_TEST("wire.bth.psn", WEFT_BTH, "PSNs count from sq_psn, one a packet", 3500, {},
              psns_are_consecutive),
    WEFT_TEST("wire.bth.dest-qp", WEFT_BTH, "the destination is the peer's QP number", 3500, {},
              goes_to_peer_qp),
    WEFT_TEST("wire.bth.pkey-tver", WEFT_BTH, "P_Key is 0xFFFF, TVer is 0", 3500, {},
              pkey_and_version_match),
    WEFT_TEST("wire.bth.pad", WEFT_BTH,
              "payload is padded to four bytes with zeros, and pad says so", 5, {},
              padding_is_right),
    WEFT_SHOULD("wire.bth.reserved", WEFT_BTH, "reserved bits are sent as 0", 3500, {},
                reserved_bits_are_zero),
    WEFT_TEST("wire.bth.first-copy", WEFT_BTH, "rtx is 0 in the first copy of a packet", 100, {},
              first_copies_have_no_rtx),
    WEFT_TEST("wire.bth.ack-request", "MRC 7.4; UET AckRequest",
              "A is set on the last packet of available data", 3500, {}, last_packet_requests_ack),
    WEFT_TEST("wire.bth.solicited", WEFT_BTH,
              "SE is set on the last packet of a solicited immediate", 3500, 1,
              last_packet_is_solicited),
    WEFT_TEST("wire.reth.va", WEFT_RETH, "every packet says where its own payload goes", 3500, {},
              reth_addresses_match),
    WEFT_TEST("wire.reth.rkey", WEFT_RETH, "every packet has the rkey", 3500, {}, reth_keys_match),
    WEFT_TEST("wire.reth.length", WEFT_RETH, "every packet has the length of the whole message",
              3500, {}, reth_lengths_match),
    WEFT_TEST("wire.meth.msn", WEFT_METH, "all packets of a message have its number", 3500, {},
              message_numbers_match),
    WEFT_TEST("wire.payload.sizes", "MRC 6.2.2; path MTU",
              "all packets but the last are exactly one MTU", 3500, {}, packets_have_mtu_size),
    WEFT_TEST("wire.payload.bytes", "MRC 6.2.2", "the payloads in PSN order are the message", 3500,
              {}, bytes),
    WEFT_TEST("wire.icrc.valid", "RoCEv2, ICRC", "every packet's ICRC matches", 3500, {},
              icrc_matches),
    WEFT_SHOULD("wire.icrc.covers-payload", "RoCEv2, ICRC", "the ICRC covers the payload too", 3500,
                {}, icrc_covers_payload),
    WEFT_SHOULD("wire.ip.ect", "MRC 7.5.5.2, ECN", "data is sent as ECT(0)", 3500, {},
                packets_are_ect),
};

}  // namespace

std::span<const Test> wire_write_tests() { return kTests; }

}  // namespace weft::conformance
