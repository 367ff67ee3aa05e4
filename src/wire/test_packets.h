// For tests: bytes from hexadecimal text, the golden vectors, and packets drawn from a seed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/prng.h"
#include "wire/frame.h"
#include "wire/packet.h"

namespace weft::wire::test {

using Buffer = std::vector<std::byte>;

// Bytes from text such as "cb 30 ff": spaces and bars separate, everything else is two digits per
// byte.
inline Buffer hex(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  Buffer out;
  unsigned high = 16;
  for (char c : text) {
    if (c == ' ' || c == '|') continue;
    const std::size_t digit = kDigits.find(c);
    WEFT_ASSERT(digit != std::string_view::npos);
    if (high == 16) {
      high = static_cast<unsigned>(digit);
    } else {
      out.push_back(static_cast<std::byte>(high << 4 | static_cast<unsigned>(digit)));
      high = 16;
    }
  }
  WEFT_ASSERT(high == 16);
  return out;
}

inline Buffer emitted(const Packet& packet) {
  std::array<std::byte, kHeaderSizeMax> out;
  const std::size_t size = emit(packet, out);
  return Buffer(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size));
}

// A golden vector: a packet and its bytes from the BTH on. docs/wire.md calls them V1 to V9.
struct Golden {
  std::string name;
  Packet packet;
  Buffer bytes;
};

inline constexpr std::uint32_t kRequestorQpn = 0x456, kResponderQpn = 0x123;
inline constexpr std::uint32_t kGoldenEv = 0xabcd1234;

inline std::vector<Golden> golden_vectors() {
  const Sack sack = {.mark = PathMark::kSkipOnce,
                     .trigger_offset = 7,
                     .entropy = kGoldenEv,
                     .spdcid = kRequestorQpn,
                     .dpdcid = kResponderQpn,
                     .cack = Psn(4),
                     .mpr = 8,
                     .bitmap_offset = 1,
                     .bitmap = 0x76,
                     .echo = {0x1234},
                     .ooo_count = 5,
                     .rcvd_bytes_256 = 0x123};
  Sack probe_answer = sack;
  probe_answer.mark = PathMark::kNone;
  probe_answer.trigger_offset = 0;
  probe_answer.answers_probe = true;
  probe_answer.probe_id = 0xbeef;
  const Bth sack_bth = {.opcode = Opcode::kSack, .dest_qpn = kRequestorQpn, .psn = Psn(4)};
  const Bth request_bth = {
      .opcode = Opcode::kEndpointRequest, .dest_qpn = kEndpointQpn, .psn = Psn(0x42)};
  Bth response_bth = request_bth;
  response_bth.opcode = Opcode::kEndpointResponse;
  Bth psu_bth = request_bth;
  psu_bth.psn = Psn(0x43);
  return {
      {"V1 WRITE Only with immediate",
       {{.opcode = Opcode::kWriteOnlyImm,
         .pad = 3,
         .dest_qpn = kResponderQpn,
         .ack_request = true,
         .psn = Psn(10)},
        Write{.rqmsn = 2,
              .msn = 7,
              .sent = {0x1234},
              .va = 0x7f00'1122'3344,
              .rkey = 0xdeadbeef,
              .message_size = 5,
              .immediate = 0xcafef00d}},
       hex("cb 30 ff ff 00 00 01 23 90 00 00 0a | 00 02 00 07 | 12 34 00 01 |"
           "00 00 7f 00 11 22 33 44 de ad be ef 00 00 00 05 | ca fe f0 0d")},
      {"V2 SACK",
       {sack_bth, sack},
       hex("dc 00 ff ff 00 00 04 56 00 00 00 04 | 00 20 00 07 ab cd 12 34 04 56 01 23"
           "00 00 00 04 00 08 00 01 00 00 00 00 00 00 00 76 | 12 34 00 05 00 00 01 23")},
      {"V3 SACK that answers a probe",
       {sack_bth, probe_answer},
       hex("dc 00 ff ff 00 00 04 56 00 00 00 04 | 00 02 be ef ab cd 12 34 04 56 01 23"
           "00 00 00 04 00 08 00 01 00 00 00 00 00 00 00 76 | 12 34 00 05 00 00 01 23")},
      {"V4 NACK",
       {{.opcode = Opcode::kNack, .dest_qpn = kRequestorQpn, .psn = Psn(8)},
        Nack{.reason = NackReason::kTrimmed,
             .entropy = kGoldenEv,
             .spdcid = kRequestorQpn,
             .dpdcid = kResponderQpn,
             .psn = Psn(8),
             .echo = {0x1234}}},
       hex("dd 00 ff ff 00 00 04 56 00 00 00 08 |"
           "00 00 01 00 ab cd 12 34 04 56 01 23 00 00 00 08 20 00 12 34")},
      {"V5 probe",
       {{.opcode = Opcode::kProbe, .dest_qpn = kResponderQpn},
        Probe{.probe_id = 0xbeef,
              .spdcid = kRequestorQpn,
              .dpdcid = kResponderQpn,
              .sent = {0x1300}}},
       hex("de 00 ff ff 00 00 01 23 00 00 00 00 | 00 00 00 00 be ef 00 00 04 56 01 23 13 00 00 "
           "01")},
      {"V6 EV probe",
       {request_bth, EndpointRequest{.op = EndpointOp::kEvProbe, .sent = {0x1300}}},
       hex("d8 00 ff ff 00 00 00 02 00 00 00 42 | 00 01 00 00 00 00 00 00 00 00 00 00 13 00 00 "
           "01")},
      {"V7 EV probe response",
       {response_bth, EndpointResponse{.op = EndpointOp::kEvProbe, .echo = {0x1300}}},
       hex("d9 00 ff ff 00 00 00 02 00 00 00 42 | 00 04 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
           "00 00 00 00 00 00 00 00 00 00 00 00 13 00 00 00 00 00 00 00")},
      {"V8 port status update",
       {psu_bth,
        EndpointRequest{
            .op = EndpointOp::kPortStatusUpdate, .port_status = 0x1ee, .sent = {0x1300}}},
       hex("d8 00 ff ff 00 00 00 02 00 00 00 43 | 00 00 00 00 00 00 01 ee 00 00 00 00 13 00 00 "
           "01")},
      {"V9 Transport ACK",
       {{.opcode = Opcode::kTransportAck, .dest_qpn = kRequestorQpn, .psn = Psn(11)},
        TransportAck{.syndrome = AckSyndrome::kAck, .msn = 8}},
       hex("d1 00 ff ff 00 00 04 56 00 00 00 0b | 1f 00 00 08")},
  };
}

// The frame of V1 without Ethernet: IPv6 to ICRC.
inline Buffer golden_v1_ip() {
  return hex(
      "61 20 12 34 00 3c 11 40 | fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 |"
      "fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 | ab cd 12 b7 00 3c 00 00 |"
      "cb 30 ff ff 00 00 01 23 90 00 00 0a | 00 02 00 07 | 12 34 00 01 |"
      "00 00 7f 00 11 22 33 44 de ad be ef 00 00 00 05 | ca fe f0 0d |"
      "00 01 02 03 04 00 00 00 | 10 be 8f 43");
}

inline Envelope golden_v1_envelope() {
  return {.source = {.high = 0xfd00'0000'0000'0000, .low = 1},
          .destination = {.high = 0xfd00'0000'0000'0000, .low = 2},
          .dscp = 4,
          .ecn = 2,
          .entropy = kGoldenEv};
}

inline constexpr std::array<Opcode, 12> kOpcodes = {
    Opcode::kWriteFirst,
    Opcode::kWriteMiddle,
    Opcode::kWriteLast,
    Opcode::kWriteLastImm,
    Opcode::kWriteOnly,
    Opcode::kWriteOnlyImm,
    Opcode::kTransportAck,
    Opcode::kEndpointRequest,
    Opcode::kEndpointResponse,
    Opcode::kSack,
    Opcode::kNack,
    Opcode::kProbe,
};

// Draws one bit, 8, 16, 32 bits: every value of the type is possible.
inline bool draw1(Prng& prng) { return (prng.next() & 1) != 0; }
inline std::uint8_t draw8(Prng& prng) { return static_cast<std::uint8_t>(prng.next()); }
inline std::uint16_t draw16(Prng& prng) { return static_cast<std::uint16_t>(prng.next()); }
inline std::uint32_t draw32(Prng& prng) { return static_cast<std::uint32_t>(prng.next()); }

inline Write random_write(Prng& prng, Opcode opcode) {
  Write write;
  write.rqmsn = draw16(prng);
  write.msn = draw16(prng);
  write.has_timestamp = draw1(prng);
  if (write.has_timestamp) {
    write.timestamp_coarse = draw1(prng);
    write.sent.ticks = draw16(prng);
  }
  write.va = prng.next();
  write.rkey = draw32(prng);
  write.message_size = draw32(prng);
  if (has_immediate(opcode)) write.immediate = draw32(prng);
  return write;
}

inline Sack random_sack(Prng& prng) {
  Sack sack;
  sack.mark = static_cast<PathMark>(prng.below(3));
  sack.answers_probe = draw1(prng);
  if (sack.answers_probe) {
    sack.probe_id = draw16(prng);
  } else {
    sack.trigger_offset = static_cast<std::int16_t>(draw16(prng));
  }
  sack.entropy = draw32(prng);
  sack.spdcid = draw16(prng);
  sack.dpdcid = draw16(prng);
  sack.cack = Psn(draw32(prng));
  sack.cc_type = static_cast<std::uint8_t>(prng.below(16));
  sack.cc_flags = static_cast<std::uint8_t>(prng.below(16));
  sack.mpr = draw8(prng);
  sack.bitmap_offset = static_cast<std::int16_t>(draw16(prng));
  sack.bitmap = prng.next();
  sack.echo.ticks = draw16(prng);
  sack.ooo_count = static_cast<std::uint16_t>(prng.below(0x8000));
  sack.restore_cwnd = draw1(prng);
  sack.cwnd_penalty = static_cast<std::uint8_t>(prng.below(0x80));
  sack.rcvd_bytes_256 = prng.below(1 << 24);
  return sack;
}

inline Body random_body(Prng& prng, Opcode opcode) {
  switch (opcode) {
    case Opcode::kTransportAck: {
      constexpr std::array<AckSyndrome, 4> kSyndromes = {
          AckSyndrome::kAck, AckSyndrome::kNakInvalidRequest, AckSyndrome::kNakRemoteAccess,
          AckSyndrome::kNakRemoteOperational};
      return TransportAck{.syndrome = kSyndromes[prng.below(4)], .msn = prng.below(1 << 24)};
    }
    case Opcode::kSack:
      return random_sack(prng);
    case Opcode::kNack:
      return Nack{.reason = static_cast<NackReason>(draw8(prng)),
                  .vendor_info = draw8(prng),
                  .entropy = draw32(prng),
                  .spdcid = draw16(prng),
                  .dpdcid = draw16(prng),
                  .psn = Psn(draw32(prng)),
                  .cc_type = static_cast<std::uint8_t>(prng.below(16)),
                  .cc_flags = static_cast<std::uint8_t>(prng.below(16)),
                  .echo = {draw16(prng)}};
    case Opcode::kProbe:
      return Probe{.vendor_info = draw8(prng),
                   .probe_id = draw16(prng),
                   .spdcid = draw16(prng),
                   .dpdcid = draw16(prng),
                   .sent = {draw16(prng)},
                   .timestamp_coarse = draw1(prng)};
    case Opcode::kEndpointRequest:
      return EndpointRequest{.op = static_cast<EndpointOp>(prng.below(2)),
                             .vendor_info = draw8(prng),
                             .port_status = draw32(prng),
                             .sent = {draw16(prng)},
                             .timestamp_coarse = draw1(prng)};
    case Opcode::kEndpointResponse:
      return EndpointResponse{.op = static_cast<EndpointOp>(prng.below(2)), .echo = {draw16(prng)}};
    default:
      return random_write(prng, opcode);
  }
}

// A valid packet with this opcode; every field can take every valid value.
inline Packet random_packet(Prng& prng, Opcode opcode) {
  Packet packet;
  packet.bth = {.opcode = opcode,
                .solicited = draw1(prng),
                .migrated = draw1(prng),
                .pad = static_cast<std::uint8_t>(prng.below(4)),
                .pkey = draw16(prng),
                .dest_qpn = prng.below(kQpnMask + 1),
                .ack_request = draw1(prng),
                .rtx = draw1(prng),
                .psn = Psn(draw32(prng))};
  packet.body = random_body(prng, opcode);
  return packet;
}

}  // namespace weft::wire::test
