#include "wire/layout.h"
#include "wire/packet.h"

namespace weft::wire {

using base::load16;
using base::load32;
using base::load64;
using base::load8;

namespace {

constexpr std::uint32_t u32(auto value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint16_t low16(std::uint32_t value) { return static_cast<std::uint16_t>(value); }
constexpr EndpointOp endpoint_op(std::uint32_t word, unsigned shift) {
  return static_cast<EndpointOp>(word >> shift & kEndpointOpMask);
}

// The functions below fill a value in place, because copying a packet costs more than parsing it.
// REQUIRES, unless a function says otherwise: `in` holds the whole header after the BTH.

// METH [TSETH] RETH [ImmDt]; `in` may end anywhere.
void parse_write(ConstBytes in, const HeaderShape& shape, Write& write) {
  write.has_timestamp = false;
  write.truncated = true;
  std::size_t at = 0;
  if (in.size() < meth_at::kSize) return;
  write.rqmsn = load16(in, meth_at::kRqmsn);
  write.msn = load16(in, meth_at::kMsn);
  at += meth_at::kSize;
  if (shape.has_timestamp) {
    if (in.size() < at + tseth_at::kSize) return;
    write.has_timestamp = true;
    write.sent.ticks = load16(in, at + tseth_at::kTimestamp);
    write.timestamp_coarse = (load16(in, at + tseth_at::kFlags) & tseth_at::kCoarse) != 0;
    at += tseth_at::kSize;
  }
  if (in.size() < at + reth_at::kSize) return;
  write.va = load64(in, at + reth_at::kVa);
  write.rkey = load32(in, at + reth_at::kRkey);
  write.message_size = load32(in, at + reth_at::kLength);
  at += reth_at::kSize;
  if (has_immediate(shape.opcode)) {
    if (in.size() < at + immdt_at::kSize) return;
    write.immediate = load32(in, at + immdt_at::kValue);
  }
  write.truncated = false;
}

// The three high bits are 0 for an ACK and 3 for a NAK. MRC does not use the credits of an ACK.
// Returns false for an RNR NAK and for a PSN sequence NAK, which MRC does not have.
bool parse_ack(ConstBytes in, TransportAck& ack) {
  const std::uint32_t word = load32(in, aeth_at::kWord);
  const std::uint32_t syndrome = word >> 24;
  ack.msn = word & kMask24;
  if (syndrome <= u32(AckSyndrome::kAck)) {
    ack.syndrome = AckSyndrome::kAck;
    return true;
  }
  ack.syndrome = static_cast<AckSyndrome>(syndrome);
  return ack.syndrome >= AckSyndrome::kNakInvalidRequest &&
         ack.syndrome <= AckSyndrome::kNakRemoteOperational;
}

void parse_sack(ConstBytes in, Sack& sack) {
  const std::uint32_t flags = load16(in, seth_at::kFlags);
  const std::uint32_t mark = flags >> seth_at::kMarkShift & 0x3;
  // The value 3 is reserved and carries no information about the path.
  sack.mark = mark > u32(PathMark::kAlwaysSkip) ? PathMark::kNone : static_cast<PathMark>(mark);
  sack.answers_probe = (flags & seth_at::kAnswersProbe) != 0;
  const std::uint16_t trigger = load16(in, seth_at::kTrigger);
  if (sack.answers_probe) {
    sack.probe_id = trigger;
  } else {
    sack.trigger_offset = static_cast<std::int16_t>(trigger);
  }
  sack.entropy = load32(in, seth_at::kEntropy);
  sack.spdcid = load16(in, seth_at::kSpdcid);
  sack.dpdcid = load16(in, seth_at::kDpdcid);
  sack.cack = Psn(load32(in, seth_at::kCackWord));
  const std::uint8_t cc = load8(in, seth_at::kCc);
  sack.cc_type = static_cast<std::uint8_t>(cc >> 4);
  sack.cc_flags = cc & 0xf;
  sack.mpr = load8(in, seth_at::kMpr);
  sack.bitmap_offset = static_cast<std::int16_t>(load16(in, seth_at::kBitmapOffset));
  sack.bitmap = load64(in, seth_at::kBitmap);
  sack.echo.ticks = load16(in, seth_at::kEcho);
  sack.ooo_count = load16(in, seth_at::kOooCount) & seth_at::kOooCountMask;
  const std::uint32_t rcvd = load32(in, seth_at::kRcvdWord);
  sack.restore_cwnd = (rcvd & seth_at::kRestoreCwnd) != 0;
  sack.cwnd_penalty =
      static_cast<std::uint8_t>(rcvd >> seth_at::kPenaltyShift & seth_at::kPenaltyMask);
  sack.rcvd_bytes_256 = rcvd & kMask24;
}

void parse_nack(ConstBytes in, Nack& nack) {
  nack.reason = static_cast<NackReason>(load8(in, neth_at::kReason));
  nack.vendor_info = load8(in, neth_at::kVendorInfo);
  nack.entropy = load32(in, neth_at::kEntropy);
  nack.spdcid = load16(in, neth_at::kSpdcid);
  nack.dpdcid = load16(in, neth_at::kDpdcid);
  nack.psn = Psn(load32(in, neth_at::kPsnWord));
  const std::uint8_t cc = load8(in, neth_at::kCc);
  nack.cc_type = static_cast<std::uint8_t>(cc >> 4);
  nack.cc_flags = cc & 0xf;
  nack.echo.ticks = load16(in, neth_at::kEcho);
}

void parse_probe(ConstBytes in, Probe& probe) {
  const std::uint32_t stamp = load32(in, peth_at::kTimestamp);
  probe.vendor_info = static_cast<std::uint8_t>(load32(in, peth_at::kVendorWord));
  probe.probe_id = load16(in, peth_at::kProbeId);
  probe.spdcid = load16(in, peth_at::kSpdcid);
  probe.dpdcid = load16(in, peth_at::kDpdcid);
  probe.sent.ticks = low16(stamp >> 16);
  probe.timestamp_coarse = (stamp & tseth_at::kCoarse) != 0;
}

// Returns false for an undefined op.
bool parse_endpoint_request(ConstBytes in, EndpointRequest& request) {
  const std::uint32_t word = load32(in, erth_at::kWord);
  const std::uint32_t stamp = load32(in, erth_at::kTimestamp);
  request.op = endpoint_op(word, erth_at::kOpShift);
  request.vendor_info = static_cast<std::uint8_t>(word);
  request.port_status = load32(in, erth_at::kPortStatus);
  request.sent.ticks = low16(stamp >> 16);
  request.timestamp_coarse = (stamp & tseth_at::kCoarse) != 0;
  return request.op <= EndpointOp::kEvProbe;
}

void parse_endpoint_response(ConstBytes in, EndpointResponse& response) {
  response.op = endpoint_op(load32(in, eeth_at::kWord), eeth_at::kOpShift);
  response.echo.ticks = load16(in, eeth_at::kEcho);
}

void parse_bth(ConstBytes header, Bth& bth) {
  const std::uint32_t word = load32(header, bth_at::kOpcodeWord);
  const std::uint32_t psn_word = load32(header, bth_at::kPsnWord);
  bth.opcode = static_cast<Opcode>(word >> 24);
  bth.solicited = (word & bth_at::kSolicited) != 0;
  bth.migrated = (word & bth_at::kMigrated) != 0;
  bth.pad = static_cast<std::uint8_t>(word >> bth_at::kPadShift & 0x3);
  bth.pkey = low16(word);
  bth.dest_qpn = load32(header, bth_at::kQpnWord) & kQpnMask;
  bth.ack_request = (psn_word & bth_at::kAckRequest) != 0;
  bth.rtx = (psn_word & bth_at::kRtx) != 0;
  bth.psn = Psn(psn_word);
}

// REQUIRES a header of a known opcode that is long enough. Has a single return value, so that the
// compiler builds the result in the caller's storage.
Result<Packet, DropReason> parse_checked(ConstBytes header, const HeaderShape& shape) {
  // A constant is copied with a few wide moves; a temporary would be set field by field.
  static constexpr Packet kBlank{};
  Result<Packet, DropReason> result{kBlank};
  Packet& packet = *result;
  const ConstBytes in = header.subspan(bth_at::kSize);
  bool is_good = true;
  parse_bth(header, packet.bth);
  switch (shape.opcode) {
    case Opcode::kTransportAck:
      is_good = parse_ack(in, packet.body.emplace<TransportAck>());
      break;
    case Opcode::kSack:
      parse_sack(in, packet.body.emplace<Sack>());
      break;
    case Opcode::kNack:
      parse_nack(in, packet.body.emplace<Nack>());
      break;
    case Opcode::kProbe:
      parse_probe(in, packet.body.emplace<Probe>());
      break;
    case Opcode::kEndpointRequest:
      is_good = parse_endpoint_request(in, packet.body.emplace<EndpointRequest>());
      break;
    case Opcode::kEndpointResponse:
      parse_endpoint_response(in, packet.body.emplace<EndpointResponse>());
      break;
    default:
      parse_write(in, shape, packet.body.emplace<Write>());
  }
  if (!is_good) result = DropReason::kBadHeader;
  return result;
}

}  // namespace

Result<Packet, DropReason> parse(ConstBytes header, ParseOptions options) {
  if (header.size() < bth_at::kSize) return DropReason::kTooShort;
  const std::uint32_t word = load32(header, bth_at::kOpcodeWord);
  if (word & bth_at::kVersionMask) return DropReason::kBadVersion;
  const HeaderShape shape = {
      .opcode = static_cast<Opcode>(word >> 24),
      .has_timestamp = (load32(header, bth_at::kPsnWord) & bth_at::kTimestamp) != 0};
  const std::size_t size = header_size(shape);
  if (size == 0) return DropReason::kBadOpcode;
  const bool may_be_cut = options.trimmed && is_write(shape.opcode);
  if (header.size() < size && !may_be_cut) return DropReason::kTooShort;
  return parse_checked(header, shape);
}

}  // namespace weft::wire
