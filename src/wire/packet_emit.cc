#include <algorithm>

#include "wire/layout.h"
#include "wire/packet.h"

namespace weft::wire {

using base::store16;
using base::store32;
using base::store64;
using base::store8;

namespace {

constexpr std::uint32_t u32(auto value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t flag(bool set, std::uint32_t mask) { return set ? mask : 0; }

void emit_bth(const Bth& bth, std::uint32_t psn_flags, Bytes out) {
  WEFT_ASSERT(out.size() >= kHeaderSizeMax);
  WEFT_ASSERT(bth.pad <= 3 && bth.dest_qpn <= kQpnMask);
  store32(out, bth_at::kOpcodeWord,
          u32(bth.opcode) << 24 | flag(bth.solicited, bth_at::kSolicited) |
              flag(bth.migrated, bth_at::kMigrated) | u32(bth.pad) << bth_at::kPadShift | bth.pkey);
  store32(out, bth_at::kQpnWord, bth.dest_qpn);
  store32(out, bth_at::kPsnWord,
          psn_flags | flag(bth.ack_request, bth_at::kAckRequest) | flag(bth.rtx, bth_at::kRtx) |
              bth.psn.value());
}

std::uint32_t tseth(Timestamp sent, bool coarse) {
  return u32(sent.ticks) << 16 | flag(coarse, tseth_at::kCoarse) | tseth_at::kFtype;
}

}  // namespace

std::size_t emit(const Bth& bth, const Write& write, Bytes out) {
  WEFT_ASSERT(is_write(bth.opcode));
  emit_bth(bth, flag(write.has_timestamp, bth_at::kTimestamp), out);
  std::size_t at = bth_at::kSize;
  store32(out, at, u32(write.rqmsn) << 16 | write.msn);
  at += meth_at::kSize;
  if (write.has_timestamp) {
    store32(out, at, tseth(write.sent, write.timestamp_coarse));
    at += tseth_at::kSize;
  }
  // A truncated packet keeps at most all headers but the last one.
  if (write.truncated && !has_immediate(bth.opcode)) return at;
  store64(out, at + reth_at::kVa, write.va);
  store32(out, at + reth_at::kRkey, write.rkey);
  store32(out, at + reth_at::kLength, write.message_size);
  at += reth_at::kSize;
  if (!has_immediate(bth.opcode) || write.truncated) return at;
  store32(out, at + immdt_at::kValue, write.immediate);
  return at + immdt_at::kSize;
}

std::size_t emit(const Bth& bth, const TransportAck& ack, Bytes out) {
  WEFT_ASSERT(bth.opcode == Opcode::kTransportAck);
  emit_bth(bth, 0, out);
  store32(out, bth_at::kSize + aeth_at::kWord, u32(ack.syndrome) << 24 | (ack.msn & kMask24));
  return bth_at::kSize + aeth_at::kSize;
}

std::size_t emit(const Bth& bth, const Sack& sack, Bytes out) {
  WEFT_ASSERT(bth.opcode == Opcode::kSack);
  emit_bth(bth, 0, out);
  const Bytes to = out.subspan(bth_at::kSize);
  store16(to, seth_at::kFlags,
          u32(sack.mark) << seth_at::kMarkShift | flag(sack.answers_probe, seth_at::kAnswersProbe));
  store16(to, seth_at::kTrigger,
          sack.answers_probe ? sack.probe_id : static_cast<std::uint16_t>(sack.trigger_offset));
  store32(to, seth_at::kEntropy, sack.entropy);
  store16(to, seth_at::kSpdcid, sack.spdcid);
  store16(to, seth_at::kDpdcid, sack.dpdcid);
  store32(to, seth_at::kCackWord, sack.cack.value());
  store8(to, seth_at::kCc, u32(sack.cc_type) << 4 | (sack.cc_flags & 0xfu));
  store8(to, seth_at::kMpr, sack.mpr);
  store16(to, seth_at::kBitmapOffset, static_cast<std::uint16_t>(sack.bitmap_offset));
  store64(to, seth_at::kBitmap, sack.bitmap);
  store16(to, seth_at::kEcho, sack.echo.ticks);
  store16(to, seth_at::kOooCount, std::min(u32(sack.ooo_count), seth_at::kOooCountMask));
  store32(to, seth_at::kRcvdWord,
          flag(sack.restore_cwnd, seth_at::kRestoreCwnd) |
              (sack.cwnd_penalty & seth_at::kPenaltyMask) << seth_at::kPenaltyShift |
              (sack.rcvd_bytes_256 & kMask24));
  return bth_at::kSize + seth_at::kSize;
}

std::size_t emit(const Bth& bth, const Nack& nack, Bytes out) {
  WEFT_ASSERT(bth.opcode == Opcode::kNack);
  emit_bth(bth, 0, out);
  const Bytes to = out.subspan(bth_at::kSize);
  store16(to, neth_at::kZero, 0);
  store8(to, neth_at::kReason, u32(nack.reason));
  store8(to, neth_at::kVendorInfo, nack.vendor_info);
  store32(to, neth_at::kEntropy, nack.entropy);
  store16(to, neth_at::kSpdcid, nack.spdcid);
  store16(to, neth_at::kDpdcid, nack.dpdcid);
  store32(to, neth_at::kPsnWord, nack.psn.value());
  store8(to, neth_at::kCc, u32(nack.cc_type) << 4 | (nack.cc_flags & 0xfu));
  store8(to, neth_at::kReserved, 0);
  store16(to, neth_at::kEcho, nack.echo.ticks);
  return bth_at::kSize + neth_at::kSize;
}

std::size_t emit(const Bth& bth, const Probe& probe, Bytes out) {
  WEFT_ASSERT(bth.opcode == Opcode::kProbe);
  emit_bth(bth, 0, out);
  const Bytes to = out.subspan(bth_at::kSize);
  store32(to, peth_at::kVendorWord, probe.vendor_info);
  store16(to, peth_at::kProbeId, probe.probe_id);
  store16(to, peth_at::kReserved, 0);
  store16(to, peth_at::kSpdcid, probe.spdcid);
  store16(to, peth_at::kDpdcid, probe.dpdcid);
  store32(to, peth_at::kTimestamp, tseth(probe.sent, probe.timestamp_coarse));
  return bth_at::kSize + peth_at::kSize;
}

std::size_t emit(const Bth& bth, const EndpointRequest& request, Bytes out) {
  WEFT_ASSERT(bth.opcode == Opcode::kEndpointRequest && request.op <= EndpointOp::kEvProbe);
  emit_bth(bth, 0, out);
  const Bytes to = out.subspan(bth_at::kSize);
  store32(to, erth_at::kWord, u32(request.op) << erth_at::kOpShift | request.vendor_info);
  store32(to, erth_at::kPortStatus, request.port_status);
  store32(to, erth_at::kReserved, 0);
  store32(to, erth_at::kTimestamp, tseth(request.sent, request.timestamp_coarse));
  return bth_at::kSize + erth_at::kSize;
}

std::size_t emit(const Bth& bth, const EndpointResponse& response, Bytes out) {
  WEFT_ASSERT(bth.opcode == Opcode::kEndpointResponse);
  emit_bth(bth, 0, out);
  const Bytes to = out.subspan(bth_at::kSize, eeth_at::kSize);
  std::fill(to.begin(), to.end(), std::byte{0});
  store32(to, eeth_at::kWord, (u32(response.op) & kEndpointOpMask) << eeth_at::kOpShift);
  store16(to, eeth_at::kEcho, response.echo.ticks);
  return bth_at::kSize + eeth_at::kSize;
}

std::size_t emit(const Packet& packet, Bytes out) {
  return std::visit([&](const auto& body) { return emit(packet.bth, body, out); }, packet.body);
}

}  // namespace weft::wire
