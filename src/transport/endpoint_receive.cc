// Endpoint, incoming: finds the QP of each datagram, and answers endpoint requests.
#include <algorithm>
#include <variant>

#include "transport/endpoint.h"
#include "wire/framing.h"

namespace weft::transport {

void Endpoint::on_datagrams(Time now, std::span<const world::Datagram> in) {
  for (const world::Datagram& d : in) {
    if (d.is_refusal()) {
      on_refusal(now, d.peer);
      continue;
    }
    if (trace_) {
      const std::uint32_t peer = peers_.find(d.peer);
      trace_.received(now, d, {.host = peer == Peer::kNobody ? peer : peers_[peer].host});
    }
    if (ports_.is_disabled(d.port)) {
      drop(DropReason::kPortDisabled);
      continue;
    }
    if (!d.intact) {
      drop(DropReason::kDamaged);
      continue;
    }
    const auto packet = wire::parse(d.header, {.trimmed = world::is_trimmed(d.dscp)});
    if (!packet) {
      drop(packet.error());
      continue;
    }
    on_packet(now, d, *packet);
  }
  flush_prompt_answers();
}

// Sends the answers that are not delayed: those to NICs, and all answers in a world that delays
// none.
void Endpoint::flush_prompt_answers() {
  for (const std::uint32_t index : answers_.prompt()) {
    Qp& qp = qps_[index];
    answers_.on_prompt_answered(qp.answers);
    qp.responder.queue_due_answers(control_, responder_counters_);
  }
  answers_.on_all_prompt_answered();
}

void Endpoint::flush_answers(Time now) {
  for (const std::uint32_t index : answers_.delayed()) {
    Qp& qp = qps_[index];
    answers_.on_delayed_answered(now, qp.answers);
    qp.responder.queue_due_answers(control_, responder_counters_);
  }
  answers_.on_all_delayed_answered();
}

void Endpoint::on_packet(Time now, const world::Datagram& in, const wire::Packet& packet) {
  const wire::Bth& bth = packet.bth;
  if (const auto* request = std::get_if<wire::EndpointRequest>(&packet.body))
    return on_endpoint_request(now, in, bth, *request);
  if (std::holds_alternative<wire::EndpointResponse>(packet.body))
    return on_endpoint_response(now, in, bth);
  if (const auto* write = std::get_if<wire::Write>(&packet.body))
    return on_write_packet(now, in, bth, *write);
  Qp* const qp = find_receiver(in, bth.dest_qpn);
  if (qp == nullptr) return;
  if (const auto* probe = std::get_if<wire::Probe>(&packet.body))
    return on_probe(now, in, *qp, *probe);
  on_answer(now, in, *qp, packet);
}

// The QP that a packet is for. Returns null, and drops the packet, if there is no such QP or the
// sender is not its peer.
Qp* Endpoint::find_receiver(const world::Datagram& in, Qpn qpn) {
  Qp* const qp = qps_.find(qpn);
  if (qp == nullptr || qp->peer == Qp::kNoPeer) {
    drop(DropReason::kUnknownQp);
    return nullptr;
  }
  Peer& peer = peers_[qp->peer];
  if (peer.planes[in.port].address != in.peer && peers_.find(in.peer) != qp->peer) {
    drop(DropReason::kUnknownPeer);
    return nullptr;
  }
  peer.heard = in.port;
  return qp;
}

void Endpoint::on_probe(Time now, const world::Datagram& in, Qp& qp, const wire::Probe& probe) {
  if (qp.state == QpState::kError) {
    if (!qp.responder.repeat_nak(control_)) drop(DropReason::kQpInError);
    return;
  }
  if (qp.peer_is_silent) on_silence_over(now, qp);
  const bool marked = in.ecn == world::Ecn::kCe;
  qp.responder.on_probe(probe, {.entropy = in.entropy, .marked = marked, .port = in.port}, control_,
                        responder_counters_);
}

// A SACK, a NACK or a Transport ACK.
void Endpoint::on_answer(Time now, const world::Datagram& in, Qp& qp, const wire::Packet& packet) {
  if (!qp.may_send()) return drop(DropReason::kQpInError);
  auto c = context(now);
  c.received_at = std::min(in.received_at, now);
  qp.requestor.on_heard(c);
  Status status = Status::kOk;
  if (const auto* sack = std::get_if<wire::Sack>(&packet.body)) {
    if (!qp.requestor.on_sack(c, packet.bth, *sack)) drop(DropReason::kBadHeader);
  } else if (const auto* nack = std::get_if<wire::Nack>(&packet.body)) {
    status = qp.requestor.on_nack(c, *nack);
  } else if (const auto* ack = std::get_if<wire::TransportAck>(&packet.body)) {
    status = qp.requestor.on_transport_ack(c, packet.bth.psn, *ack);
  }
  prefetch(Call::kControl) = {qp.head(), qp.requestor.prefetch(),
                              peers_[qp.peer].part(ports_.count()),
                              qp.requestor.prefetch_records()};
  after_requestor(now, qp, status);
}

// Called after each event of a requestor.
void Endpoint::after_requestor(Time now, Qp& qp, Status status) {
  if (status != Status::kOk) return fail(now, qp, status);
  complete(qp);
  if (qp.requestor.has_work()) mark_ready(qp);
  deadlines_.at_latest(qps_.index_of(qp), qp.requestor.deadline());
  if (config_.share_path_health && prober_.take_new()) share_condemned(now, qp);
}

// A silent peer sends again, even if only its own data or probes: the requestor need not wait until
// its retry interval ends.
void Endpoint::on_silence_over(Time now, Qp& qp) {
  qp.peer_is_silent = false;
  auto c = context(now);
  qp.requestor.on_heard(c);
  after_requestor(now, qp, Status::kOk);
}

void Endpoint::on_write_packet(Time now, const world::Datagram& in, const wire::Bth& bth,
                               const wire::Write& write) {
  Qp* const qp = find_receiver(in, bth.dest_qpn);
  if (qp == nullptr) return;
  if (qp->state == QpState::kError) {
    // The requestor may have missed our NAK. The NAK is repeated for as long as the requestor
    // sends.
    if (qp->responder.repeat_nak(control_)) return;
    qp->responder.send_unexpected(bth, control_, responder_counters_);
    return drop(DropReason::kQpInError);
  }
  prefetch(Call::kData) = {qp->responder_part(), peers_[qp->peer].part(ports_.count()),
                           qp->responder.prefetch_bits()};
  const bool is_first =
      answers_.on_data(now, qps_.index_of(*qp), qp->answers, qp->params->peer->delays_answers);
  if (is_first && budget_.is_bounded()) share_budget(now, *qp);
  if (qp->peer_is_silent) on_silence_over(now, *qp);
  const bool trimmed = world::is_trimmed(in.dscp);
  const Responder::Arrival arrival{
      .now = now,
      .bth = bth,
      .write = write,
      .payload = in.payload,
      .nominal_size =
          wire::nominal_size({.header_size = in.header.size(), .payload_size = in.payload.size}),
      .entropy = in.entropy,
      .marked = in.ecn == world::Ecn::kCe,
      .trimmed = trimmed,
      .trimmed_last_hop = in.dscp == world::Dscp::kTrimmedLastHop,
      .unlisted = (config_.unlisted_ports >> in.port & 1) != 0,
      .port = in.port};
  const Status status = qp->responder.on_write_packet(
      arrival, *memory_, {qp->receives, completions_.ring()}, control_, responder_counters_);
  if (status != Status::kOk) return fail(now, *qp, status);
  answers_.watch(now, qps_.index_of(*qp), qp->answers, qp->params->peer->sack_after_quiet);
}

// The ports' receive buffers are shared among the QPs that receive. Each QP's SACKs carry its
// share.
void Endpoint::share_budget(Time now, Qp& qp) {
  const std::uint32_t unit = qp.params->budget_unit_bytes;
  if (unit == 0) return;
  budget_.on_receive(now, qp.budget_epoch);
  qp.responder.set_receive_limit(budget_.limit(now, unit));
}

// --- endpoint operations -----------------------------------------------------------------------

void Endpoint::on_endpoint_request(Time now, const world::Datagram& in, const wire::Bth& bth,
                                   const wire::EndpointRequest& request) {
  if (bth.dest_qpn != wire::kEndpointQpn) return drop(DropReason::kBadHeader);
  const std::uint32_t index = peers_.find(in.peer);
  const auto id = static_cast<std::uint16_t>(bth.psn.value());
  if (request.op == wire::EndpointOp::kPortStatusUpdate) {
    if (index == Peer::kNobody) return drop(DropReason::kUnknownPeer);
    Peer& peer = peers_[index];
    on_peer_ports(now, peer, ports_.on_update(now, peer.ports, id, request.port_status));
  }
  ControlPacket* packet = control_.add();
  if (packet == nullptr) return;
  if (index != Peer::kNobody) {
    packet->peer = index;
    packet->port = PortChoice::prefer(in.port);
  } else {
    packet->set_to(in.peer);
    packet->port = PortChoice::only(in.port);
    packet->fixed_ev = true;
    packet->entropy = in.entropy;
  }
  write_header(
      *packet,
      {.opcode = wire::Opcode::kEndpointResponse, .dest_qpn = wire::kEndpointQpn, .psn = bth.psn},
      wire::EndpointResponse{.op = request.op, .echo = request.sent});
}

void Endpoint::on_endpoint_response(Time now, const world::Datagram& in, const wire::Bth& bth) {
  const auto id = static_cast<std::uint16_t>(bth.psn.value());
  if (asks_.on_answer({.from = in.peer, .port = in.port, .at = in.received_at, .wire_id = id}))
    return;
  const std::uint32_t index = peers_.find(in.peer);
  if (index == Peer::kNobody) return drop(DropReason::kUnknownPeer);
  Peer& peer = peers_[index];
  if (ports_.on_answer(peer.ports, id)) return;
  if (ReverseEvs::on_answer(now, peer, ports_.count(), id)) return;
  const EvProber::Watch* watch = prober_.on_answer(now, index, id);
  if (watch == nullptr) return drop(DropReason::kNotExpected);
  if (!watch->active) revive(now, *watch);
}

// The peer's host says that no process has this address: is the peer gone? (RefusedPeers)
void Endpoint::on_refusal(Time now, const Address& address) {
  ++counters_.refusals;
  const std::uint32_t index = peers_.find(address);
  if (index == Peer::kNobody) return drop(DropReason::kUnknownPeer);
  qps_.for_each_of(peers_[index], [&](Qp& qp) {
    refused_.on_refusal(now, qp.refused,
                        {.may_send = qp.may_send(), .last_heard = qp.requestor.last_heard()});
  });
}

}  // namespace weft::transport
