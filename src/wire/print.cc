#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "wire/packet.h"

namespace weft::wire {

namespace {

template <typename... Args>
void append(std::string& line, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(line), format, std::forward<Args>(args)...);
}

void append_flag(std::string& line, bool set, const char* name) {
  if (set) append(line, " {}", name);
}

// Appends a mark or reason by its name, or by its number if it has no name.
template <typename Enum>
void append_name(std::string& line, const char* field, Enum value) {
  const std::string_view name = to_string(value);
  if (name == "unknown") {
    append(line, " {}=0x{:02x}", field, static_cast<unsigned>(value));
  } else {
    append(line, " {}={}", field, name);
  }
}

void append_op(std::string& line, EndpointOp op) {
  switch (op) {
    case EndpointOp::kPortStatusUpdate:
      line += " op=port_status_update";
      return;
    case EndpointOp::kEvProbe:
      line += " op=ev_probe";
      return;
  }
  append(line, " op={}", static_cast<unsigned>(op));
}

void append_body(std::string& line, const Bth& bth, const Write& write) {
  append_flag(line, write.has_timestamp, write.timestamp_coarse ? "ts(coarse)" : "ts");
  append(line, " msn={} rqmsn={}", write.msn, write.rqmsn);
  append(line, " va=0x{:x} len={}", write.va, write.message_size);
  if (has_immediate(bth.opcode)) append(line, " imm=0x{:08x}", write.immediate);
  append_flag(line, write.truncated, "truncated");
}

void append_body(std::string& line, const Bth&, const TransportAck& ack) {
  switch (ack.syndrome) {
    case AckSyndrome::kAck:
      line += " ack";
      break;
    case AckSyndrome::kNakInvalidRequest:
      line += " nak=invalid_request";
      break;
    case AckSyndrome::kNakRemoteAccess:
      line += " nak=remote_access";
      break;
    case AckSyndrome::kNakRemoteOperational:
      line += " nak=remote_operational";
      break;
  }
  append(line, " msn={}", ack.msn);
}

void append_body(std::string& line, const Bth&, const Sack& sack) {
  append(line, " cack={}", sack.cack.value());
  if (sack.answers_probe) {
    append(line, " probe=0x{:04x}", sack.probe_id);
  } else {
    append(line, " trigger={:+}", sack.trigger_offset);
  }
  append(line, " ev=0x{:08x}", sack.entropy);
  append_name(line, "mark", sack.mark);
  append(line, " mpr={}", sack.mpr);
  append(line, " bitmap={:+}:0x{:016x}", sack.bitmap_offset, sack.bitmap);
  append(line, " echo=0x{:04x} ooo={}", sack.echo.ticks, sack.ooo_count);
  append(line, " rcvd={}", sack.rcvd_bytes_256);
  append_flag(line, sack.restore_cwnd, "restore_cwnd");
  if (sack.cwnd_penalty != 0) append(line, " penalty={}", sack.cwnd_penalty);
}

void append_body(std::string& line, const Bth&, const Nack& nack) {
  append_name(line, "reason", nack.reason);
  append(line, " nack_psn={} ev=0x{:08x}", nack.psn.value(), nack.entropy);
  append(line, " echo=0x{:04x}", nack.echo.ticks);
}

void append_body(std::string& line, const Bth&, const Probe& probe) {
  append(line, " probe=0x{:04x} sent=0x{:04x}", probe.probe_id, probe.sent.ticks);
}

void append_body(std::string& line, const Bth& bth, const EndpointRequest& request) {
  append(line, " id=0x{:04x}", bth.psn.value() & 0xffff);
  append_op(line, request.op);
  if (request.op == EndpointOp::kPortStatusUpdate) {
    append(line, " ports=0x{:08x}", request.port_status);
  }
  append(line, " sent=0x{:04x}", request.sent.ticks);
}

void append_body(std::string& line, const Bth& bth, const EndpointResponse& response) {
  append(line, " id=0x{:04x}", bth.psn.value() & 0xffff);
  append_op(line, response.op);
  append(line, " echo=0x{:04x}", response.echo.ticks);
}

}  // namespace

std::string_view to_string(Opcode opcode) {
  switch (opcode) {
    case Opcode::kWriteFirst:
      return "WRITE_FIRST";
    case Opcode::kWriteMiddle:
      return "WRITE_MIDDLE";
    case Opcode::kWriteLast:
      return "WRITE_LAST";
    case Opcode::kWriteLastImm:
      return "WRITE_LAST_IMM";
    case Opcode::kWriteOnly:
      return "WRITE_ONLY";
    case Opcode::kWriteOnlyImm:
      return "WRITE_ONLY_IMM";
    case Opcode::kTransportAck:
      return "TRANSPORT_ACK";
    case Opcode::kEndpointRequest:
      return "ENDPOINT_REQUEST";
    case Opcode::kEndpointResponse:
      return "ENDPOINT_RESPONSE";
    case Opcode::kSack:
      return "SACK";
    case Opcode::kNack:
      return "NACK";
    case Opcode::kProbe:
      return "PROBE";
  }
  return "unknown";
}

std::string_view to_string(NackReason reason) {
  switch (reason) {
    case NackReason::kTrimmed:
      return "trimmed";
    case NackReason::kTrimmedLastHop:
      return "trimmed_last_hop";
    case NackReason::kNoBitmap:
      return "no_bitmap";
    case NackReason::kNoPacketBuffer:
      return "no_packet_buffer";
    case NackReason::kNoResource:
      return "no_resource";
    case NackReason::kPsnOutOfWindow:
      return "psn_out_of_window";
    case NackReason::kUnexpectedEvent:
      return "unexpected_event";
  }
  return "unknown";
}

std::string_view to_string(PathMark mark) {
  switch (mark) {
    case PathMark::kNone:
      return "none";
    case PathMark::kSkipOnce:
      return "skip_once";
    case PathMark::kAlwaysSkip:
      return "always_skip";
  }
  return "unknown";
}

std::string to_string(const Packet& packet) {
  const Bth& bth = packet.bth;
  std::string line;
  line.reserve(192);
  line += to_string(bth.opcode);
  append(line, " qp=0x{:06x} psn={}", bth.dest_qpn, bth.psn.value());
  append_flag(line, bth.solicited, "SE");
  append_flag(line, bth.ack_request, "A");
  append_flag(line, bth.rtx, "rtx");
  std::visit([&](const auto& body) { append_body(line, bth, body); }, packet.body);
  return line;
}

}  // namespace weft::wire
