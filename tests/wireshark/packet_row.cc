#include "packet_row.h"

#include <variant>

namespace weft::mrc_test {
namespace {

using namespace wire;

std::string text(auto number) { return std::to_string(number); }

void add_stamp(Row& row, const std::string& prefix, Timestamp sent, bool coarse) {
  row[prefix + ".timestamp"] = text(sent.ticks);
  row[prefix + ".tsr"] = text(coarse);
  row[prefix + ".ftype"] = "1";
}

void add(Row& row, const Bth& bth) {
  row["mrc.opcode"] = text(static_cast<unsigned>(bth.opcode));
  row["mrc.se"] = text(bth.solicited);
  row["mrc.m"] = text(bth.migrated);
  row["mrc.pad"] = text(bth.pad);
  row["mrc.tver"] = "0";
  row["mrc.pkey"] = text(bth.pkey);
  row["mrc.variant"] = "0";
  row["mrc.dqp"] = text(bth.dest_qpn);
  row["mrc.a"] = text(bth.ack_request);
  row["mrc.rtx"] = text(bth.rtx);
  row["mrc.ts"] = "0";
  row["mrc.psn"] = text(bth.psn.value());
}

void add(Row& row, const Bth& bth, const Write& write, std::size_t there) {
  const std::size_t stamp = write.has_timestamp ? 4 : 0;
  row["mrc.ts"] = text(write.has_timestamp);
  if (there >= 16) {
    row["mrc.meth.rqmsn"] = text(write.rqmsn);
    row["mrc.meth.msn"] = text(write.msn);
  }
  if (write.has_timestamp) add_stamp(row, "mrc.tseth", write.sent, write.timestamp_coarse);
  // If the TSETH was trimmed off, only BTH.ts shows that it existed, and there is no RETH either.
  if (there >= 32 + stamp && !(write.truncated && !has_immediate(bth.opcode))) {
    row["mrc.reth.va"] = text(write.va);
    row["mrc.reth.rkey"] = text(write.rkey);
    row["mrc.reth.dmalen"] = text(write.message_size);
  }
  if (has_immediate(bth.opcode) && !write.truncated) row["mrc.imm"] = text(write.immediate);
}

void add(Row& row, const Bth&, const TransportAck& ack, std::size_t) {
  row["mrc.aeth.syndrome"] = text(static_cast<unsigned>(ack.syndrome));
  row["mrc.aeth.msn"] = text(ack.msn);
}

void add(Row& row, const Bth&, const Sack& sack, std::size_t) {
  row["mrc.sack.type"] = row["mrc.sack.nh"] = "0";
  row["mrc.sack.m"] = text(static_cast<unsigned>(sack.mark));
  row["mrc.sack.pr"] = text(sack.answers_probe);
  if (sack.answers_probe) {
    row["mrc.sack.probe_id"] = text(sack.probe_id);
  } else {
    row["mrc.sack.ack_psn_offset"] = text(sack.trigger_offset);
    row["mrc.sack.trigger_psn"] = text((sack.cack + sack.trigger_offset).value());
  }
  row["mrc.sack.entropy"] = text(sack.entropy);
  row["mrc.sack.spdcid"] = text(sack.spdcid);
  row["mrc.sack.dpdcid"] = text(sack.dpdcid);
  row["mrc.sack.cack"] = text(sack.cack.value());
  row["mrc.sack.cc_type"] = text(sack.cc_type);
  row["mrc.sack.cc_flags"] = text(sack.cc_flags);
  row["mrc.sack.mpr"] = text(sack.mpr);
  row["mrc.sack.offset"] = text(sack.bitmap_offset);
  row["mrc.sack.bitmap"] = text(sack.bitmap);
  std::string& received = row["mrc.sack.received"];
  for (int i = 0; i < 64; ++i) {
    if ((sack.bitmap >> i & 1) == 0) continue;
    if (!received.empty()) received += ',';
    received += text((sack.cack + (sack.bitmap_offset + i)).value());
  }
  row["mrc.sack.timestamp"] = text(sack.echo.ticks);
  row["mrc.sack.ooo_count"] = text(sack.ooo_count);
  row["mrc.sack.restore_cwnd"] = text(sack.restore_cwnd);
  row["mrc.sack.cwnd_penalty"] = text(sack.cwnd_penalty);
  row["mrc.sack.rcvd_bytes"] = text(sack.rcvd_bytes_256);
}

void add(Row& row, const Bth&, const Nack& nack, std::size_t) {
  row["mrc.nack.reason"] = text(static_cast<unsigned>(nack.reason));
  row["mrc.nack.vendor_info"] = text(nack.vendor_info);
  row["mrc.nack.entropy"] = text(nack.entropy);
  row["mrc.nack.spdcid"] = text(nack.spdcid);
  row["mrc.nack.dpdcid"] = text(nack.dpdcid);
  row["mrc.nack.psn"] = text(nack.psn.value());
  row["mrc.nack.cc_type"] = text(nack.cc_type);
  row["mrc.nack.cc_flags"] = text(nack.cc_flags);
  row["mrc.nack.timestamp"] = text(nack.echo.ticks);
}

void add(Row& row, const Bth&, const Probe& probe, std::size_t) {
  row["mrc.probe.vendor_info"] = text(probe.vendor_info);
  row["mrc.probe.id"] = text(probe.probe_id);
  row["mrc.probe.spdcid"] = text(probe.spdcid);
  row["mrc.probe.dpdcid"] = text(probe.dpdcid);
  add_stamp(row, "mrc.probe", probe.sent, probe.timestamp_coarse);
}

void add(Row& row, const Bth& bth, const EndpointRequest& request, std::size_t) {
  row["mrc.request_id"] = text(bth.psn.value() & 0xffff);
  row["mrc.erth.op"] = text(static_cast<unsigned>(request.op));
  row["mrc.erth.vendor_info"] = text(request.vendor_info);
  row["mrc.erth.port_status"] = text(request.port_status);
  add_stamp(row, "mrc.erth", request.sent, request.timestamp_coarse);
}

void add(Row& row, const Bth& bth, const EndpointResponse& response, std::size_t) {
  row["mrc.request_id"] = text(bth.psn.value() & 0xffff);
  row["mrc.eeth.op"] = text(static_cast<unsigned>(response.op));
  row["mrc.eeth.timestamp"] = text(response.echo.ticks);
}

}  // namespace

std::vector<std::string> all_fields() {
  // The list contains every field that occurs in the row of any packet.
  Row row;
  add(row, Bth{});
  const Bth imm = {.opcode = Opcode::kWriteOnlyImm};
  add(row, imm, Write{}, kWhole);
  add(row, imm, TransportAck{}, kWhole);
  add(row, imm, Sack{}, kWhole);
  add(row, imm, Sack{.answers_probe = true}, kWhole);
  add(row, imm, Nack{}, kWhole);
  add(row, imm, Probe{}, kWhole);
  add(row, imm, EndpointRequest{}, kWhole);
  add(row, imm, EndpointResponse{}, kWhole);
  std::vector<std::string> names = {"_ws.col.Info",   "_ws.col.Protocol", "_ws.lua.error",
                                    "mrc.drop",       "mrc.payload.size", "mrc.icrc.status",
                                    "mrc.ev",         "mrc.trimmed",      "mrc.trimmed.last_hop",
                                    "mrc.srv6.block", "mrc.srv6.usid",    "mrc.sealed"};
  for (const auto& [name, value] : row) names.push_back(name);
  return names;
}

Row row_of(const Packet& packet, std::size_t there) {
  Row row;
  row["_ws.col.Info"] = to_string(packet);
  row["_ws.col.Protocol"] = "MRC";
  add(row, packet.bth);
  std::visit([&](const auto& body) { add(row, packet.bth, body, there); }, packet.body);
  return row;
}

}  // namespace weft::mrc_test
