// Endpoint, outgoing: control packets first, then the QPs in turn, each packet on a port with room.
#include <algorithm>

#include "base/assert.h"
#include "transport/endpoint.h"

namespace weft::transport {

// The datagrams of one poll_transmit, and the room that is left on each port.
struct Endpoint::Batch {
  std::span<world::Datagram> out;
  std::array<std::uint32_t, world::kPortsMax> room{};
  PortMask with_room = 0;
  std::size_t count = 0;

  bool full() const { return count == out.size(); }
  // Adds the datagram out[count], which leaves on that port.
  void add(PortIndex port) {
    WEFT_ASSERT(!full() && room[port] > 0);
    ++count;
    if (--room[port] == 0) with_room = static_cast<PortMask>(with_room & ~(1u << port));
  }
};

std::size_t Endpoint::poll_transmit(Time now, std::span<const world::PortRoom> room,
                                    std::span<world::Datagram> out) {
  Batch batch;
  batch.out = out.first(std::min<std::size_t>(out.size(), config_.batch_max));
  const std::size_t ports = std::min<std::size_t>(ports_.count(), room.size());
  std::uint32_t with_room = 0;
  for (std::size_t port = 0; port < ports; ++port) {
    batch.room[port] = room[port].packets;
    with_room |= static_cast<std::uint32_t>(room[port].packets > 0) << port;
  }
  batch.with_room = static_cast<PortMask>(with_room & ports_.up());
  const bool data_may_go = transmit_control(now, batch);
  const std::size_t before = batch.count;
  if (data_may_go) transmit_data(now, batch);
  if (batch.count > before && may_delay_answers(now)) answers_.on_data_sent(now);
  if (!answers_.is_due(now)) return batch.count;
  flush_answers(now);
  transmit_control(now, batch);
  return batch.count;
}

// A peer that gets data from us now is not blocked on our answers alone.
bool Endpoint::may_delay_answers(Time now) const {
  if (answers_.answer_at() != kNever) return false;  // answers are delayed already
  for (const std::uint32_t index : answers_.delayed()) {
    if (peers_[qps_[index].peer].data_at != now) return false;
  }
  return !answers_.delayed().empty();
}

// False when control packets still wait for room: data must not overtake them.
bool Endpoint::transmit_control(Time now, Batch& batch) {
  router_.begin_pass();
  while (!control_.empty()) {
    if (batch.full() || batch.with_room == 0) return false;
    const ControlPacket& packet = control_.front();
    const std::uint32_t index = packet.peer;
    const bool has_peer = index != ControlPacket::kNoPeer;
    const auto decision = router_.decide(packet, has_peer ? &peers_[index] : nullptr,
                                         {.up = ports_.up(), .with_room = batch.with_room});
    // No port with room reaches that peer. Data to other peers may go.
    if (decision.verdict == ControlRouter::Verdict::kWait) return true;
    const bool sent = decision.verdict == ControlRouter::Verdict::kSend;
    if (sent) {
      put_control(now, packet, decision.port, batch);
      router_.on_sent(packet, decision.port);
    }
    const bool used_reverse_ev = has_peer && !packet.fixed_ev && !packet.data_class;
    control_.pop();
    if (sent && used_reverse_ev) check_reverse_ev(now, index);
  }
  return true;
}

void Endpoint::put_control(Time now, const ControlPacket& packet, PortIndex port, Batch& batch) {
  const Peer* const peer = packet.peer == ControlPacket::kNoPeer ? nullptr : &peers_[packet.peer];
  WEFT_ASSERT(peer != nullptr || packet.fixed_ev);
  world::Datagram& d = batch.out[batch.count];
  d = {};
  d.port = port;
  d.ecn = packet.data_class ? world::Ecn::kEct0 : world::Ecn::kNotEct;
  d.dscp = packet.data_class ? world::Dscp::kTrimmable : world::Dscp::kControl;
  d.entropy = packet.fixed_ev ? packet.entropy : peer->planes[port].reverse.ev;
  d.peer = peer != nullptr ? peer->planes[port].address : packet.to();
  auto& header = headers_[batch.count];
  std::copy_n(packet.header.begin(), packet.header_size, header.begin());
  d.header = ConstBytes(header).first(packet.header_size);
  if (trace_) {
    trace_.sent(now, d, {.qpn = packet.qpn, .host = peer != nullptr ? peer->host : Peer::kNobody});
  }
  batch.add(port);
  if (packet.ask != 0) asks_.on_sent(now, packet.ask);
  ++counters_.control_packets[port];
  reverse_evs_.on_packet_sent();
}

// A control packet went to this peer, which is the moment to check one of its reverse EVs.
void Endpoint::check_reverse_ev(Time now, std::uint32_t index) {
  Peer& peer = peers_[index];
  if (peer.first_qp == Peer::kNobody) return;  // no QP, so no EVs
  reverse_evs_.check({.now = now,
                      .index = index,
                      .paths = qps_[peer.first_qp].requestor.paths(),
                      .ports_up = ports_.up(),
                      .port_count = ports_.count()},
                     peer, prng_, request_ids_, control_);
}

void Endpoint::transmit_data(Time now, Batch& batch) {
  auto c = context(now);
  std::size_t idle = 0;  // consecutive QPs that had no port with room
  std::uint32_t sent_in_burst = 0;
  bool enough = false;
  while (!ready_.empty() && !batch.full() && batch.with_room != 0 && idle < ready_.size() &&
         !enough) {
    const std::uint32_t index = ready_.front();
    Qp& qp = qps_[index];
    WEFT_ASSERT(qp.ready);
    Requestor::Outgoing out;
    const auto usable = static_cast<PortMask>(batch.with_room & peers_[qp.peer].ports.reachable);
    const auto polled = qp.may_send() ? qp.requestor.poll(c, usable, headers_[batch.count], out)
                                      : Requestor::Polled::kNothing;
    if (polled == Requestor::Polled::kPacket) {
      WEFT_ASSERT((usable >> out.ev.port & 1) != 0);  // poll() was asked for a usable port
      put_data(now, qp, out, batch);
      idle = 0;
      deadlines_.at_latest(index, qp.requestor.deadline());
      if (++sent_in_burst < config_.burst && !qp.requestor.is_burst_over()) continue;
      // A batch ends only between turns of QPs, so that no burst of full packets is cut in two.
      enough = config_.burst > 1 && batch.count >= world::kBatchMin;
      if (ready_.size() == 1) {
        sent_in_burst = 0;
        continue;
      }
    } else if (polled == Requestor::Polled::kNoPort) {
      ++idle;
    } else {
      // The pacing time may be all that the QP waits for: it is then the deadline.
      deadlines_.at_latest(index, qp.requestor.deadline());
      ready_.pop(qp.ready);
      sent_in_burst = 0;
      continue;
    }
    ready_.rotate();
    sent_in_burst = 0;
  }
}

void Endpoint::put_data(Time now, const Qp& qp, const Requestor::Outgoing& out, Batch& batch) {
  Peer& peer = peers_[qp.peer];
  prefetch(Call::kPoll) = {qp.head(), qp.requestor.prefetch(), peer.part(ports_.count()),
                           qp.requestor.paths().prefetch()};
  world::Datagram& d = batch.out[batch.count];
  d.port = out.ev.port;
  d.ecn = world::Ecn::kEct0;
  d.dscp = out.dscp;
  d.intact = true;
  d.entropy = out.ev.value;
  d.peer = peer.planes[out.ev.port].address;
  d.header = ConstBytes(headers_[batch.count]).first(out.header_size);
  d.payload = out.payload;
  if (trace_) trace_.sent(now, d, {.qpn = qp.qpn, .host = peer.host});
  batch.add(out.ev.port);
  peer.data_at = now;
  reverse_evs_.on_packet_sent();
}

Result<void> Endpoint::post_endpoint_request(Time now, const EndpointAsk& ask) {
  if (ask.port >= ports_.count()) return Error{ErrorKind::kInvalid, "no such port"};
  if (asks_.has(ask.id)) return Error{ErrorKind::kInvalid, "id under way"};
  ControlPacket* const packet = asks_.full() ? nullptr : control_.add();
  if (packet == nullptr) return Error{ErrorKind::kExhausted, "queue is full"};
  const std::uint16_t id = request_ids_.next();
  asks_.add(now, ask, id);
  packet->ask = id;
  packet->port = PortChoice::only(ask.port);
  packet->fixed_ev = true;
  packet->entropy = ask.ev;
  packet->data_class = ask.traffic == AskClass::kData;
  packet->set_to(ask.to);
  write_header(
      *packet,
      {.opcode = wire::Opcode::kEndpointRequest, .dest_qpn = wire::kEndpointQpn, .psn = Psn(id)},
      wire::EndpointRequest{.op = ask.op, .port_status = ask.port_status});
  return {};
}

}  // namespace weft::transport
