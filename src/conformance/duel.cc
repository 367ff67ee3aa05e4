#include "conformance/duel.h"

#include <bit>
#include <map>

namespace weft::conformance {
namespace {

ibv_gid gid_of(const Ipv6& ip) {
  std::array<std::byte, 16> bytes;
  base::store_ipv6(bytes, 0, ip);
  ibv_gid gid{};
  std::memcpy(gid.raw, bytes.data(), bytes.size());
  return gid;
}

EndOptions end_options(const DuelOptions& options) {
  EndOptions out = options.end;
  out.psn = options.device_psn;
  return out;
}

}  // namespace

Duel::Duel(Session& on, const DuelOptions& with)
    : session(on),
      options(with),
      host(on),
      end(host, end_options(with)),
      cover(on.options().icrc.value_or(IcrcCover::kFull)),
      tester(open_tester(on, host, end.qpn(), cover)) {
  target = {.gid = gid_of(tester.address()),
            .qpn = kQpn,
            .psn = options.tester_psn,
            .rkey = 0xdeadbeef,
            .at = 0x7f00'1122'3000,
            .size = 1 << 30};
  mrc_qp_attr receive{}, send{};
  int receive_mask = 0, send_mask = MRC_QP_TIMEOUT;
  if (options.mpr_dest) {
    receive.mpr.mpr_dest = *options.mpr_dest;
    receive_mask |= MRC_QP_MPR_DEST;
  }
  if (options.max_wimm_dest) {
    receive.wimm.max_wimm_dest = *options.max_wimm_dest;
    receive_mask |= MRC_QP_MAX_WIMM_DEST;
  }
  send.timeout = options.timeout;
  if (options.mpr) {
    send.mpr.mpr = *options.mpr;
    send_mask |= MRC_QP_MPR;
  }
  if (options.max_wimm) {
    send.wimm.max_wimm = *options.max_wimm;
    send_mask |= MRC_QP_MAX_WIMM;
  }
  if (options.linear_retries || options.exponential_retries) {
    send.retry.linear_cnt = options.linear_retries.value_or(7);
    send.retry.exp_cnt = options.exponential_retries.value_or(0);
    send_mask |= MRC_QP_RETRY_CNT;
  }
  works("mrc_modify_qp to INIT", end.to_init());
  works("mrc_modify_qp to RTR",
        end.to_rtr(target, options.mtu, receive_mask != 0 ? &receive : nullptr, receive_mask));
  works("mrc_modify_qp to RTS", end.to_rts(&send, send_mask));
}

// --- the device sends ---------------------------------------------------------------------------

void Duel::post(std::uint32_t size, std::uint64_t id, std::optional<std::uint32_t> immediate,
                unsigned flags) {
  fill(end.memory.data(), size, id);
  end.write(target, {.size = size, .id = id, .flags = flags, .immediate = immediate});
}

bool is_write(const ReceivedPacket& seen) { return seen.as<wire::Write>() != nullptr; }
bool is_fresh_write(const ReceivedPacket& seen) { return is_write(seen) && !seen.bth().rtx; }

// While waiting, this also polls the CQs, because some libraries make progress only inside calls.
ReceivedPacket Duel::next_where(std::string_view what,
                                const std::function<bool(const ReceivedPacket&)>& wanted) {
  while (!session.is_over()) {
    ibv_wc wc{};
    host.library.mrc_poll_cq(end.receive_cq, 0, &wc);
    if (auto seen = tester.next(Clock::now() + milliseconds(2)); seen && wanted(*seen))
      return std::move(*seen);
  }
  fail(std::string(what) + " from the device",
       tester.unreadable > 0 ? fmt::format("{} packets that are not MRC", tester.unreadable)
                             : "none came in time");
}

ReceivedPacket Duel::next_write() { return next_where("a WRITE", is_fresh_write); }

std::vector<ReceivedPacket> Duel::message(std::uint32_t packet_count) {
  std::map<std::int32_t, ReceivedPacket> by_psn;
  std::optional<Psn> first;
  while (by_psn.size() < packet_count) {
    ReceivedPacket seen = next_write();
    if (!first) first = seen.bth().psn;
    by_psn.emplace(seen.bth().psn.since(*first), std::move(seen));
  }
  std::vector<ReceivedPacket> out;
  for (auto& [at, seen] : by_psn) out.push_back(std::move(seen));
  return out;
}

wire::Packet Duel::sack(Psn cack, std::uint64_t bits) const {
  wire::Sack body;
  body.cack = cack;
  body.bitmap_offset = 1;
  body.bitmap = bits;
  body.ooo_count = static_cast<std::uint16_t>(std::popcount(bits));
  body.mpr = 32;
  body.spdcid = static_cast<std::uint16_t>(end.qpn());
  body.dpdcid = kQpn;
  return {.bth = {.opcode = wire::Opcode::kSack, .dest_qpn = end.qpn(), .psn = cack}, .body = body};
}

void Duel::acknowledge(const ReceivedPacket& write, Psn cack, std::uint64_t bits) {
  wire::Packet packet = sack(cack, bits);
  auto& body = std::get<wire::Sack>(packet.body);
  body.trigger_offset = static_cast<std::int16_t>(write.bth().psn.since(cack));
  body.entropy = write.entropy();
  body.echo = write.as<wire::Write>()->sent;
  // rcvd_bytes in units of 256: every packet counts as a full one, so the value is never less than
  // the device's own count.
  const auto packets =
      static_cast<std::uint32_t>(cack.since(Psn(options.device_psn)) + 1) + body.ooo_count;
  body.rcvd_bytes_256 = packets * ((mtu_bytes() + 40 + 8 + 36 + 4 + 255) / 256);
  packet.bth.rtx = write.bth().rtx;
  tester.send(packet, {}, {.plane = write.plane});
}

void Duel::transport_ack(Psn psn, std::uint32_t msn) {
  tester.send({.bth = {.opcode = wire::Opcode::kTransportAck, .dest_qpn = end.qpn(), .psn = psn},
               .body = wire::TransportAck{.msn = msn}});
}

void Duel::transport_nak(Psn psn, wire::AckSyndrome syndrome) {
  tester.send({.bth = {.opcode = wire::Opcode::kTransportAck, .dest_qpn = end.qpn(), .psn = psn},
               .body = wire::TransportAck{.syndrome = syndrome}});
}

void Duel::nack(const ReceivedPacket& write, wire::NackReason reason) {
  wire::Nack body;
  body.reason = reason;
  body.entropy = write.entropy();
  body.psn = write.bth().psn;
  body.echo = write.as<wire::Write>()->sent;
  body.spdcid = static_cast<std::uint16_t>(end.qpn());
  body.dpdcid = kQpn;
  tester.send(
      {.bth = {.opcode = wire::Opcode::kNack, .dest_qpn = end.qpn(), .psn = write.bth().psn},
       .body = body},
      {}, {.plane = write.plane});
}

void Duel::answer_probe(const ReceivedPacket& seen, Psn cack, std::uint64_t bits) {
  const auto* const probe = seen.as<wire::Probe>();
  if (probe == nullptr) return;
  wire::Packet answer = sack(cack, bits);
  auto& body = std::get<wire::Sack>(answer.body);
  body.answers_probe = true;
  body.probe_id = probe->probe_id;
  body.echo = probe->sent;
  body.entropy = seen.entropy();
  tester.send(answer, {}, {.plane = seen.plane});
}

ReceivedPacket Duel::next_retransmission(Psn cack, std::uint64_t bits) {
  return next_where("a retransmission", [&](const ReceivedPacket& seen) {
    answer_probe(seen, cack, bits);
    return is_write(seen) && seen.bth().rtx;
  });
}

void Duel::accept(const ReceivedPacket& last, std::uint32_t msn) {
  acknowledge(last, last.bth().psn);
  transport_ack(last.bth().psn, msn);
}

bool CorrectResponder::take(const ReceivedPacket& write) {
  const Psn psn = write.bth().psn;
  const bool fresh = psn.since(cack_) > 0 && above_.insert(psn.value()).second;
  while (above_.erase((cack_ + 1).value()) != 0) cack_ = cack_ + 1;
  std::uint64_t bits = 0;
  for (std::int32_t i = 0; i < 64; ++i) {
    if (above_.count((cack_ + 1 + i).value()) != 0) bits |= 1ull << i;
  }
  duel_.acknowledge(write, cack_, bits);
  return fresh;
}

// --- the device receives ------------------------------------------------------------------------

wire::Packet Duel::packet_of(const Piece& piece) const {
  return {
      .bth = {.opcode = piece.opcode,
              .solicited = piece.solicited,
              .pad = static_cast<std::uint8_t>((4 - piece.size % 4) % 4),
              .dest_qpn = end.qpn(),
              .ack_request = piece.ack_request,
              .rtx = piece.rtx,
              .psn = psn(piece.psn)},
      .body = wire::Write{.rqmsn = piece.rqmsn,
                          .msn = piece.msn,
                          .sent = {piece.timestamp},
                          .va = reinterpret_cast<std::uintptr_t>(end.memory.data()) + piece.to,
                          .rkey = piece.rkey.value_or(end.mr->rkey),
                          .message_size = piece.message_size != 0 ? piece.message_size : piece.size,
                          .immediate = piece.immediate}};
}

void Duel::send(const Piece& piece, const Tester::SendOptions& how) {
  std::vector<std::uint8_t> payload(piece.size);
  fill(payload.data(), payload.size(), piece.seed);
  tester.send(packet_of(piece), std::as_bytes(std::span(payload)), how);
}

ReceivedPacket Duel::next_sack() {
  return next_where("a SACK",
                    [](const ReceivedPacket& seen) { return seen.as<wire::Sack>() != nullptr; });
}
ReceivedPacket Duel::next_transport_ack() {
  return next_where("a Transport ACK", [](const ReceivedPacket& seen) {
    return seen.as<wire::TransportAck>() != nullptr;
  });
}
ReceivedPacket Duel::next_nack() {
  return next_where("a NACK",
                    [](const ReceivedPacket& seen) { return seen.as<wire::Nack>() != nullptr; });
}

void Duel::none_where(std::string_view what, milliseconds how_long,
                      const std::function<bool(const ReceivedPacket&)>& unwanted) {
  const auto until = Clock::now() + how_long;
  ibv_wc wc{};
  while (Clock::now() < until) {
    host.library.mrc_poll_cq(end.receive_cq, 0, &wc);
    const auto seen = tester.next(std::min(until, Clock::now() + milliseconds(2)));
    if (seen && unwanted(*seen)) fail(fmt::format("no {}", what), wire::to_string(seen->packet));
  }
}

void Duel::expect_still_works(std::int32_t at) {
  const std::uint64_t seed = 0x5afe;
  send({.psn = at, .to = end.memory.size() - 64, .size = 64, .seed = seed});
  next_where("a SACK that covers a good packet", [&](const ReceivedPacket& seen) {
    const auto* const sack = seen.as<wire::Sack>();
    return sack != nullptr && sack->cack == psn(at);
  });
  is_pattern(end.memory.data() + end.memory.size() - 64, 64, seed);
}

}  // namespace weft::conformance
