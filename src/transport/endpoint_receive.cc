// Endpoint, incoming: which QP is this datagram for, and what does the endpoint itself answer?
#include <algorithm>
#include <variant>

#include "transport/endpoint.h"
#include "wire/framing.h"

namespace weft::transport {
namespace {

// For so long one that waited for its answers gets them at once; then it is tried again.
constexpr Duration kAtOnce = Duration::ms(50);
constexpr std::uint8_t kWaitsShown = 2;  // in a row

}  // namespace

void Endpoint::on_datagrams(Time now, std::span<const world::Datagram> in) {
  for (const world::Datagram& d : in) {
    if (d.is_refusal()) {
      on_refusal(now, d.peer);
      continue;
    }
    if (trace_ != nullptr) {
      const std::uint32_t peer = find_peer(d.peer);
      trace_datagram(now, TraceKind::kReceive, d, 0,
                     peer == Peer::kNobody ? Peer::kNobody : peers_[peer].host);
    }
    if (ports_disabled_ >> d.port & 1) {
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
  flush_prompt_answers(now);
}

// Sends the answers that are not delayed: all to NICs, and to everybody where the world delays none.
void Endpoint::flush_prompt_answers(Time now) {
  if (config_.answers_delay == Duration()) return flush_answers(now);
  std::size_t kept = 0;
  for (const std::uint32_t index : touched_) {
    Qp& qp = *qps_[index];
    if (delays_answers(qp)) {
      touched_[kept++] = index;
      continue;
    }
    qp.touched = false;
    qp.responder.flush(control_, responder_counters_);
  }
  touched_.resize(kept);
}

// Of those whose answers are late, and who sent nothing meanwhile: if they do as soon as they have
// them, they waited, and will again. A program may not use its memory before. Once may be chance, as a
// process stands still now and then. Half of the delay: others may have begun it.
void Endpoint::flush_answers(Time now) {
  const bool late = answers_at_ <= now, put_off = config_.answers_delay > Duration();
  for (const std::uint32_t index : touched_) {
    Qp& qp = *qps_[index];
    qp.touched = false;
    if (late && now - qp.received_at >= config_.answers_delay / 2) {
      if (qp.waited_if_before != Time()) qp.waits = 0;  // it did not go on the last time
      qp.waited_if_before = now + config_.answers_delay;
    } else if (put_off && !late) {
      qp.waits = 0;
    }
    qp.responder.flush(control_, responder_counters_);
  }
  touched_.clear();
  unanswered_ = 0;
  somebody_waits_ = false;
  answers_at_ = kNever;
}

void Endpoint::on_packet(Time now, const world::Datagram& in, const wire::Packet& packet) {
  const wire::Bth& bth = packet.bth;
  if (const auto* request = std::get_if<wire::EndpointRequest>(&packet.body)) {
    return on_endpoint_request(now, in, bth, *request);
  }
  if (std::holds_alternative<wire::EndpointResponse>(packet.body))
    return on_endpoint_response(now, in, bth);
  if (const auto* write = std::get_if<wire::Write>(&packet.body))
    return on_write(now, in, bth, *write);

  Qp* qp = find_qp(bth.dest_qpn);
  if (qp == nullptr || qp->peer == Qp::kNoPeer) return drop(DropReason::kUnknownQp);
  if (peers_[qp->peer].ways[in.port].address != in.peer && find_peer(in.peer) != qp->peer) {
    return drop(DropReason::kUnknownPeer);
  }
  peers_[qp->peer].heard = in.port;
  if (const auto* probe = std::get_if<wire::Probe>(&packet.body)) {
    if (qp->state == QpState::kError) {
      if (!qp->responder.repeat_nak(control_)) drop(DropReason::kQpInError);
      return;
    }
    if (qp->silent) on_word(now, *qp);
    const bool marked = in.ecn == world::Ecn::kCe;
    return qp->responder.on_probe(*probe,
                                  {.entropy = in.entropy, .marked = marked, .port = in.port},
                                  control_, responder_counters_);
  }
  if (!qp->may_send()) return drop(DropReason::kQpInError);
  auto c = context(now);
  c.received_at = std::min(in.received_at, now);
  qp->requestor.on_heard(c);
  Status status = Status::kOk;
  if (const auto* sack = std::get_if<wire::Sack>(&packet.body)) {
    if (!qp->requestor.on_sack(c, bth, *sack)) drop(DropReason::kBadHeader);
  } else if (const auto* nack = std::get_if<wire::Nack>(&packet.body)) {
    status = qp->requestor.on_nack(c, *nack);
  } else if (const auto* ack = std::get_if<wire::TransportAck>(&packet.body)) {
    status = qp->requestor.on_transport_ack(c, bth.psn, *ack);
  }
  hot(Call::kControl) = {qp->head(), qp->requestor.hot(), peers_[qp->peer].part(port_count_),
                         qp->requestor.hot_records()};
  after_requestor(now, *qp, status);
}

// What follows from anything a requestor heard or decided.
void Endpoint::after_requestor(Time now, Qp& qp, Status status) {
  if (status != Status::kOk) return fail(now, qp, status);
  collect(qp);
  if (qp.requestor.has_work()) mark_ready(qp);
  deadlines_.at_latest(qp_index(qp), qp.requestor.deadline());
  if (config_.share_path_health && prober_.take_new()) share_condemned(now, qp);
}

// A peer that was silent sends again, if only its own data or probes: the requestor need not wait
// out its interval.
void Endpoint::on_word(Time now, Qp& qp) {
  qp.silent = false;
  auto c = context(now);
  qp.requestor.on_heard(c);
  after_requestor(now, qp, Status::kOk);
}

void Endpoint::on_write(Time now, const world::Datagram& in, const wire::Bth& bth,
                        const wire::Write& write) {
  Qp* qp = find_qp(bth.dest_qpn);
  if (qp == nullptr || qp->peer == Qp::kNoPeer) return drop(DropReason::kUnknownQp);
  Peer& peer = peers_[qp->peer];
  if (peer.ways[in.port].address != in.peer && find_peer(in.peer) != qp->peer)
    return drop(DropReason::kUnknownPeer);
  peer.heard = in.port;
  if (qp->state == QpState::kError) {
    // The requestor may have missed our NAK: it is repeated for as long as it sends.
    if (qp->responder.repeat_nak(control_)) return;
    qp->responder.send_unexpected(bth, control_, responder_counters_);
    return drop(DropReason::kQpInError);
  }
  hot(Call::kData) = {qp->responder_part(), peer.part(port_count_), qp->responder.hot_bits()};
  qp->received_at = now;
  if (delays_answers(*qp)) {
    ++unanswered_;
    if (now < qp->waited_if_before) {
      qp->waited_if_before = Time();
      if (++qp->waits >= kWaitsShown) qp->at_once_until = now + kAtOnce;
    }
    if (now < qp->at_once_until) somebody_waits_ = true;
  }
  if (qp->silent) on_word(now, *qp);
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
      .unlisted = (config_.unlisted_ports >> in.port & 1) != 0};
  if (!qp->touched) {
    qp->touched = true;
    touched_.push_back(qp_index(*qp));
    if (budget_.is_bounded()) share_budget(now, *qp);
  }
  const Status status = qp->responder.on_write(arrival, *memory_, {qp->receives, completions_},
                                               control_, responder_counters_);
  if (status != Status::kOk) return fail(now, *qp, status);
  if (qp->params->peer->sack_after_quiet > Duration()) watch_quiet(now, *qp);
}

void Endpoint::watch_quiet(Time now, Qp& qp) {
  if (qp.watched) return;
  qp.watched = true;
  watched_.push_back(qp_index(qp));
  quiet_at_ = std::min(quiet_at_, now + qp.params->peer->sack_after_quiet);
}

void Endpoint::report_quiet(Time now) {
  quiet_at_ = kNever;
  std::size_t kept = 0;
  for (const std::uint32_t index : watched_) {
    Qp& qp = *qps_[index];
    qp.watched = false;
    if (!qp.responder.owes_sack() || !qp.may_receive()) continue;
    if (const Time due = qp.received_at + qp.params->peer->sack_after_quiet; due > now) {
      qp.watched = true;
      watched_[kept++] = index;
      quiet_at_ = std::min(quiet_at_, due);
      continue;
    }
    const Peer& peer = peers_[qp.peer];
    for (std::uint32_t port = 0; port < port_count_; ++port) {
      if ((peer.usable(ports_up_) >> port & 1) == 0 || !peer.ways[port].reverse.present) continue;
      qp.responder.report({.port = static_cast<std::uint8_t>(port)}, control_, responder_counters_);
      ++quiet_sacks_;
    }
    qp.responder.settle();
  }
  watched_.resize(kept);
}

// What the ports hold is shared among the QPs that receive: this one's part goes with its SACKs.
void Endpoint::share_budget(Time now, Qp& qp) {
  const std::uint32_t unit = qp.params->budget_unit_bytes;
  if (unit == 0) return;
  budget_.on_receive(now, qp.budget_epoch);
  qp.responder.limit(budget_.limit(now, unit));
}

// --- endpoint operations -----------------------------------------------------------------------

void Endpoint::on_endpoint_request(Time now, const world::Datagram& in, const wire::Bth& bth,
                                   const wire::EndpointRequest& request) {
  if (bth.dest_qpn != wire::kEndpointQpn) return drop(DropReason::kBadHeader);
  const std::uint32_t peer = find_peer(in.peer);
  if (request.op == wire::EndpointOp::kPortStatusUpdate) {
    if (peer == Peer::kNobody) return drop(DropReason::kUnknownPeer);
    // Answered in any case; applied only if it is not older than what is known. Numbers are shared
    // with probes and come round: after a while they say nothing about the order.
    Peer& from = peers_[peer];
    const auto id = static_cast<std::uint16_t>(bth.psn.value());
    const auto ahead = static_cast<std::int16_t>(id - from.update_seen_id);
    const bool recent = from.update_seen && now - from.update_seen_at < Duration::ms(10);
    if (!recent || ahead >= 0) {
      from.update_seen = true;
      from.update_seen_at = now;
      from.update_seen_id = id;
      on_port_status(now, peer, request.port_status);
    }
  }
  ControlPacket* packet = control_.add();
  if (packet == nullptr) return;
  packet->peer = peer;
  packet->near = in.port;
  if (peer == ControlPacket::kNoPeer) {
    packet->to_high = in.peer.high;
    packet->to_process = in.peer.process;
    packet->to_low = in.peer.low;
    packet->port = in.port;
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
  const std::uint32_t index = find_peer(in.peer);
  if (index == Peer::kNobody) return drop(DropReason::kUnknownPeer);
  Peer& peer = peers_[index];
  if (id != 0 && peer.update_id == id) {
    peer.update_id = 0;
    peer.update_next = kNever;
    return;
  }
  for (std::uint32_t port = 0; port < port_count_; ++port) {
    Peer::Reverse& reverse = peer.ways[port].reverse;
    if (id == 0 || reverse.request_id != id) continue;
    reverse.request_id = 0;
    reverse.failures = 0;
    reverse.confirmed_at = now;
    peer.answered_open_at = std::max(peer.answered_open_at, reverse.open_at);
    return;
  }
  const EvProber::Watch* watch = prober_.on_answer(now, index, id);
  if (watch == nullptr) return drop(DropReason::kNotExpected);
  if (!watch->active) revive(now, *watch);
}

void Endpoint::revive(Time now, const EvProber::Watch& watch) {
  ++(watch.plane ? planes_revived_ : evs_revived_);
  for (std::uint32_t i = peers_[watch.peer].first_qp; i != Peer::kNobody;
       i = qps_[i]->next_of_peer) {
    Qp& qp = *qps_[i];
    PathSet& paths = qp.requestor.paths();
    if (watch.plane) qp.requestor.on_port_back(now, watch.ev.port);
    const PathSet::Slot slot = paths.find(watch.ev);
    if (slot != PathSet::kNone && paths.is_condemned(slot)) paths.revive(now, slot);
    if (qp.requestor.has_work()) mark_ready(qp);
  }
}

// Beyond MRC: what one QP found bad, its siblings to the same peer need not find again.
void Endpoint::share_condemned(Time now, const Qp& from) {
  const PathSet& known = from.requestor.paths();
  for (std::uint32_t i = peers_[from.peer].first_qp; i != Peer::kNobody;
       i = qps_[i]->next_of_peer) {
    Qp& qp = *qps_[i];
    if (&qp == &from) continue;
    PathSet& paths = qp.requestor.paths();
    auto c = context(now);
    for (std::uint32_t p = 0; p < port_count_; ++p) {
      const auto port = static_cast<PortIndex>(p);
      if ((known.planes_down() >> p & 1) == 0 || !paths.condemn_plane(now, port)) continue;
      qp.requestor.on_port_lost(c, port);
      mark_ready(qp);
    }
    for (std::uint32_t s = 0; s < known.size(); ++s) {
      const auto slot = static_cast<PathSet::Slot>(s);
      if (known.state(slot) != EvState::kAssumedBad) continue;
      const PathSet::Slot same = paths.find(known.ev(slot));
      if (same != PathSet::kNone) paths.condemn(now, same);
    }
  }
}

void Endpoint::on_port_status(Time now, std::uint32_t peer_index, std::uint32_t mask) {
  Peer& peer = peers_[peer_index];
  // The wire counts ports from 1.
  const auto reachable = static_cast<PortMask>(mask >> 1 | config_.unlisted_ports);
  const auto gone = static_cast<PortMask>(peer.reachable & ~reachable);
  const auto back = static_cast<PortMask>(~peer.reachable & reachable);
  peer.reachable = reachable;
  for (std::uint32_t i = peer.first_qp; i != Peer::kNobody; i = qps_[i]->next_of_peer) {
    Qp& qp = *qps_[i];
    auto c = context(now);
    for (std::uint32_t port = 0; port < port_count_; ++port) {
      if (gone >> port & 1) qp.requestor.on_port_lost(c, static_cast<PortIndex>(port));
      if (back >> port & 1) qp.requestor.on_port_back(now, static_cast<PortIndex>(port));
    }
    if (qp.may_send() && qp.requestor.has_work()) mark_ready(qp);
  }
}

void Endpoint::on_port(Time now, PortIndex port, world::PortState state) {
  budget_.on_port(now, port, state);
  const auto bit = static_cast<PortMask>(1u << port);
  ports_carrier_ = static_cast<PortMask>(state.up ? ports_carrier_ | bit : ports_carrier_ & ~bit);
  update_port(now, port);
}

void Endpoint::set_port_admin(Time now, PortIndex port, bool enabled) {
  WEFT_ASSERT(port < port_count_);
  const auto bit = static_cast<PortMask>(1u << port);
  ports_disabled_ = static_cast<PortMask>(enabled ? ports_disabled_ & ~bit : ports_disabled_ | bit);
  update_port(now, port);
}

void Endpoint::update_port(Time now, PortIndex port) {
  const auto bit = static_cast<PortMask>(1u << port);
  const bool up = (ports_carrier_ & ~ports_disabled_ & bit) != 0;
  if (((ports_up_ & bit) != 0) == up) return;
  ports_up_ = static_cast<PortMask>(up ? ports_up_ | bit : ports_up_ & ~bit);
  trace_port(now, port);
  for (std::uint32_t i = 0; i <= qp_mask_; ++i) {
    QpSlot& qp = qps_[i];
    if (!qp || !qp->may_send()) continue;
    if (up) {
      qp->requestor.on_port_back(now, port);
    } else {
      auto c = context(now);
      qp->requestor.on_port_lost(c, port);
    }
    if (qp->requestor.has_work()) mark_ready(*qp);
  }
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].first_qp == Peer::kNobody) continue;
    peers_[i].update_tries = 0;
    peers_[i].ways[port].reverse.failures = 0;
    send_port_status(now, i);
  }
}

void Endpoint::trace_port(Time now, PortIndex port) {
  if (trace_ == nullptr) return;
  TraceRecord record;
  record.at = now;
  record.host = config_.host;
  record.kind = TraceKind::kPort;
  record.port = port;
  record.a = ports_up_ >> port & 1;
  trace_->append(record);
}

void Endpoint::send_port_status(Time now, std::uint32_t peer_index) {
  Peer& peer = peers_[peer_index];
  // Every 100 us three times, then every 10 ms, until answered.
  peer.update_next = now + (peer.update_tries < 3 ? Duration::us(100) : Duration::ms(10));
  if (peer.update_tries < 0xff) ++peer.update_tries;
  peer.told = true;
  port_status_next_ = std::min(port_status_next_, peer.update_next);
  if (peer.update_tries == 1) peer.update_id = take_request_id();
  ControlPacket* packet = control_.add();
  if (packet == nullptr) return;
  ++port_updates_;
  packet->peer = peer_index;
  const auto listed = static_cast<std::uint32_t>(ports_up_ & ~config_.unlisted_ports);
  write_header(
      *packet,
      {.opcode = wire::Opcode::kEndpointRequest,
       .dest_qpn = wire::kEndpointQpn,
       .psn = Psn(peer.update_id)},
      wire::EndpointRequest{.op = wire::EndpointOp::kPortStatusUpdate, .port_status = listed << 1});
}

void Endpoint::resend_port_status(Time now) {
  port_status_next_ = kNever;
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].update_id == 0 || peers_[i].first_qp == Peer::kNobody) continue;
    if (peers_[i].update_next <= now) {
      send_port_status(now, i);
    } else {
      port_status_next_ = std::min(port_status_next_, peers_[i].update_next);
    }
  }
}

}  // namespace weft::transport
