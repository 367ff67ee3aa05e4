// Every MRC packet as a value, and the two functions between values and bytes.
//
// The bytes are those from the BTH to the last extension header. IP and UDP (frame.h), payload and
// ICRC (icrc.h) are not part of them. Parsing accepts any bytes and returns a packet or a drop
// reason. Emitting asserts that the packet is valid. docs/wire.md has the layouts, and our choice
// where the sources disagree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "base/psn.h"
#include "base/result.h"
#include "wire/drop_reason.h"

namespace weft::wire {

enum class Opcode : std::uint8_t {
  kWriteFirst = 0xc6,
  kWriteMiddle = 0xc7,
  kWriteLast = 0xc8,
  kWriteLastImm = 0xc9,
  kWriteOnly = 0xca,
  kWriteOnlyImm = 0xcb,
  kTransportAck = 0xd1,
  kEndpointRequest = 0xd8,
  kEndpointResponse = 0xd9,
  kSack = 0xdc,
  kNack = 0xdd,
  kProbe = 0xde,
};

// The QPN that endpoint requests and responses are sent to.
inline constexpr std::uint32_t kEndpointQpn = 2;
inline constexpr std::uint32_t kQpnMask = 0xff'ffff;
// The longest header: BTH + SETH + CC_STATE, or BTH + EETH.
inline constexpr std::size_t kHeaderSizeMax = 48;
// The bytes after the IP header that a trimming switch keeps: UDP, BTH, METH, TSETH, RETH.
inline constexpr std::size_t kTrimmedSizeAfterIp = 44;

// The 16-bit timestamps count 128 ns (tsr = 0) and wrap after 8.39 ms.
struct Timestamp {
  std::uint16_t ticks = 0;
  friend bool operator==(Timestamp, Timestamp) = default;
};

struct Bth {
  Opcode opcode = Opcode::kWriteOnly;
  bool solicited = false;  // the SE bit
  bool migrated = false;   // the M bit
  std::uint8_t pad = 0;    // 0..3 bytes of padding after the payload
  std::uint16_t pkey = 0xffff;
  std::uint32_t dest_qpn = 0;
  bool ack_request = false;  // the A bit: the sender asks for a SACK
  bool rtx = false;          // this is a retransmission
  Psn psn{};
  friend bool operator==(const Bth&, const Bth&) = default;
};

// Every WRITE, from First to Only with Immediate: METH [TSETH] RETH [ImmDt].
struct Write {
  std::uint16_t rqmsn = 0;  // counts messages with immediate
  std::uint16_t msn = 0;    // counts messages
  bool has_timestamp = true;
  bool timestamp_coarse = false;  // the tsr bit: ticks longer than 128 ns
  Timestamp sent{};
  std::uint64_t va = 0;  // the address where this packet's payload is placed
  std::uint32_t rkey = 0;
  std::uint32_t message_size = 0;  // bytes of the whole message, the same in every packet
  std::uint32_t immediate = 0;     // only in Last and Only with immediate
  // True if a trimming switch cut the header before RETH or ImmDt. Fields that were cut off are 0,
  // and has_timestamp is false if the TSETH was cut off.
  bool truncated = false;
  friend bool operator==(const Write&, const Write&) = default;
};

enum class AckSyndrome : std::uint8_t {
  kAck = 0x1f,
  kNakInvalidRequest = 0x61,
  kNakRemoteAccess = 0x62,
  kNakRemoteOperational = 0x63,
};

// AETH. BTH.psn is the cumulative PSN, or the refused PSN of a NAK. An ACK with any credit value
// parses as kAck. A syndrome that is not listed does not parse.
struct TransportAck {
  AckSyndrome syndrome = AckSyndrome::kAck;
  std::uint32_t msn = 0;  // 24 bits, emitted modulo 2^24: messages completed
  friend bool operator==(const TransportAck&, const TransportAck&) = default;
};

// The reserved value 3 parses as kNone.
enum class PathMark : std::uint8_t { kNone = 0, kSkipOnce = 1, kAlwaysSkip = 2 };

// A bit of SACK.cc_flags that only Weft sets: the responder lost packets because its receive buffer
// was full, so no path is to blame.
inline constexpr std::uint8_t kCcFlagOverflow = 1;

// SETH + CC_STATE. BTH.psn = cack. BTH.rtx echoes the rtx bit of the triggering packet.
struct Sack {
  PathMark mark = PathMark::kNone;
  bool answers_probe = false;       // pr: `probe_id` is valid, otherwise `trigger_offset`
  std::int16_t trigger_offset = 0;  // PSN that triggered this SACK, relative to cack
  std::uint16_t probe_id = 0;
  std::uint32_t entropy = 0;  // EV of the triggering packet
  std::uint16_t spdcid = 0, dpdcid = 0;
  Psn cack{};  // cumulative PSN: every PSN up to and including it was received
  std::uint8_t cc_type = 0, cc_flags = 0;
  std::uint8_t mpr = 0;            // units of 128 PSNs; 0 = no change
  std::int16_t bitmap_offset = 0;  // bit i is PSN cack + bitmap_offset + i
  std::uint64_t bitmap = 0;        // set = received; clear = no information
  Timestamp echo{};
  std::uint16_t ooo_count = 0;  // 15 bits, emitted saturated: PSNs received above cack
  bool restore_cwnd = false;
  std::uint8_t cwnd_penalty = 0;  // 7 bits
  // 24 bits, emitted modulo 2^24: bytes received in units of 256, rounded up.
  std::uint32_t rcvd_bytes_256 = 0;
  friend bool operator==(const Sack&, const Sack&) = default;
};

enum class NackReason : std::uint8_t {
  kTrimmed = 0x01,
  kTrimmedLastHop = 0x02,
  kNoBitmap = 0x06,
  kNoPacketBuffer = 0x07,
  kNoResource = 0x0a,
  kPsnOutOfWindow = 0x0b,
  kUnexpectedEvent = 0x19,
};

// NETH. BTH.psn = nack_psn. An unknown reason parses: `reason` then holds the raw value.
struct Nack {
  NackReason reason = NackReason::kTrimmed;
  std::uint8_t vendor_info = 0;
  std::uint32_t entropy = 0;
  std::uint16_t spdcid = 0, dpdcid = 0;
  Psn psn{};
  std::uint8_t cc_type = 2, cc_flags = 0;
  Timestamp echo{};
  friend bool operator==(const Nack&, const Nack&) = default;
};

// PETH: reliability probe request. Consumes no PSN; answered by a SACK with answers_probe.
struct Probe {
  std::uint8_t vendor_info = 0;
  std::uint16_t probe_id = 0;
  std::uint16_t spdcid = 0, dpdcid = 0;
  Timestamp sent{};
  bool timestamp_coarse = false;
  friend bool operator==(const Probe&, const Probe&) = default;
};

// The values on the wire. The API swaps the two numbers.
enum class EndpointOp : std::uint8_t { kPortStatusUpdate = 0, kEvProbe = 1 };

// ERTH. BTH.dest_qpn = kEndpointQpn, BTH.psn[15:0] = request id. An unknown op does not parse.
struct EndpointRequest {
  EndpointOp op = EndpointOp::kEvProbe;
  std::uint8_t vendor_info = 0;
  std::uint32_t port_status = 0;  // bit N: port N (from 1) is reachable
  Timestamp sent{};
  bool timestamp_coarse = false;
  friend bool operator==(const EndpointRequest&, const EndpointRequest&) = default;
};

// EETH. A response is matched to its request by request id. The sources disagree about the position
// of `op`, so nothing depends on it: its two bits are kept as received.
struct EndpointResponse {
  EndpointOp op = EndpointOp::kEvProbe;
  Timestamp echo{};
  friend bool operator==(const EndpointResponse&, const EndpointResponse&) = default;
};

using Body =
    std::variant<Write, TransportAck, Sack, Nack, Probe, EndpointRequest, EndpointResponse>;

struct Packet {
  Bth bth{};
  Body body{};
  friend bool operator==(const Packet&, const Packet&) = default;
};

// Returns the packet, or why the bytes are not a packet. `trimmed`: the DSCP says so; then the
// header of a WRITE may end anywhere after the BTH. Reserved bits and bytes after the header are
// ignored. Never asserts, whatever the bytes.
struct ParseOptions {
  bool trimmed = false;
};
Result<Packet, DropReason> parse(ConstBytes header, ParseOptions options = {});

// Writes BTH and extension headers with reserved bits 0, and returns the number of bytes. A
// truncated WRITE ends before the RETH, or before the ImmDt if it has an immediate. REQUIRES
// out.size() >= kHeaderSizeMax, a body that fits the opcode, pad <= 3, dest_qpn <= kQpnMask.
std::size_t emit(const Packet& packet, Bytes out);
// The same without building a variant, for the transport's data path.
std::size_t emit(const Bth& bth, const Write& write, Bytes out);
std::size_t emit(const Bth& bth, const TransportAck& ack, Bytes out);
std::size_t emit(const Bth& bth, const Sack& sack, Bytes out);
std::size_t emit(const Bth& bth, const Nack& nack, Bytes out);
std::size_t emit(const Bth& bth, const Probe& probe, Bytes out);
std::size_t emit(const Bth& bth, const EndpointRequest& request, Bytes out);
std::size_t emit(const Bth& bth, const EndpointResponse& response, Bytes out);

constexpr bool is_write(Opcode op) {
  return op >= Opcode::kWriteFirst && op <= Opcode::kWriteOnlyImm;
}
constexpr bool has_immediate(Opcode op) {
  return op == Opcode::kWriteLastImm || op == Opcode::kWriteOnlyImm;
}
constexpr bool ends_message(Opcode op) {
  return op == Opcode::kWriteLast || op == Opcode::kWriteOnly || has_immediate(op);
}

// The size of a header from the BTH on; 0 if the opcode is not one of the twelve.
struct HeaderShape {
  Opcode opcode = Opcode::kWriteOnly;
  bool has_timestamp = false;  // BTH.ts; only relevant for a WRITE
};
constexpr std::size_t header_size(HeaderShape shape) {
  switch (shape.opcode) {
    case Opcode::kWriteFirst:
    case Opcode::kWriteMiddle:
    case Opcode::kWriteLast:
    case Opcode::kWriteOnly:
      return shape.has_timestamp ? 36 : 32;
    case Opcode::kWriteLastImm:
    case Opcode::kWriteOnlyImm:
      return shape.has_timestamp ? 40 : 36;
    case Opcode::kTransportAck:
      return 16;
    case Opcode::kEndpointRequest:
    case Opcode::kProbe:
      return 28;
    case Opcode::kEndpointResponse:
    case Opcode::kSack:
      return 48;
    case Opcode::kNack:
      return 32;
  }
  return 0;
}

// A name such as "WRITE_ONLY_IMM" or "trimmed"; "unknown" for a value without a name.
std::string_view to_string(Opcode opcode);
std::string_view to_string(NackReason reason);
std::string_view to_string(PathMark mark);

// One line for people: "WRITE_ONLY_IMM qp=0x000123 psn=10 A ts msn=7 rqmsn=2 va=0x7f0011223344
// len=5 imm=0xcafef00d".
std::string to_string(const Packet& packet);

}  // namespace weft::wire
