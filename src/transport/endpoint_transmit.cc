// Endpoint, outgoing: control packets first, then the QPs in turn, each packet on a port with room.
#include <algorithm>

#include "transport/endpoint.h"

namespace weft::transport {

namespace {

// Data packets that answers_delay puts off the answers to.
constexpr std::uint32_t kUnansweredMax = 16;

}  // namespace

struct Endpoint::Batch {
  std::span<world::Datagram> out;
  std::array<std::uint32_t, world::kPortsMax> room{};
  PortMask with_room = 0;
  std::size_t count = 0;

  bool full() const { return count == out.size(); }
  void took(PortIndex port) {
    ++count;
    if (--room[port] == 0) with_room = static_cast<PortMask>(with_room & ~(1u << port));
  }
};

std::size_t Endpoint::poll_transmit(Time now, std::span<const world::PortRoom> room,
                                    std::span<world::Datagram> out) {
  Batch batch;
  batch.out = out.first(std::min<std::size_t>(out.size(), config_.batch_max));
  const std::size_t ports = std::min<std::size_t>(port_count_, room.size());
  std::uint32_t with_room = 0;
  for (std::size_t port = 0; port < ports; ++port) {
    batch.room[port] = room[port].packets;
    with_room |= static_cast<std::uint32_t>(room[port].packets > 0) << port;
  }
  batch.with_room = static_cast<PortMask>(with_room & ports_up_);
  const bool data_may_go = transmit_control(now, batch);
  const std::size_t before = batch.count;
  if (data_may_go) transmit_data(now, batch);
  if (touched_.empty()) return batch.count;
  if (batch.count > before && answers_at_ == kNever && may_wait(now))
    answers_at_ = now + config_.answers_delay;
  if (answers_at_ == kNever || answers_at_ <= now || somebody_waits_ ||
      unanswered_ >= kUnansweredMax) {
    flush_answers(now);
    transmit_control(now, batch);
  }
  return batch.count;
}

// A peer that gets data from us now is not waiting for the answer alone.
bool Endpoint::may_wait(Time now) const {
  for (const std::uint32_t index : touched_) {
    if (peers_[qps_[index]->peer].data_at != now) return false;
  }
  return true;
}

// False when control packets are left waiting for room: data must not overtake them.
bool Endpoint::transmit_control(Time now, Batch& batch) {
  std::uint32_t same_peer = ControlPacket::kNoPeer;  // answers to it follow on `same_port`
  std::uint8_t same_port = ControlPacket::kAnyPort;
  std::uint8_t first_port = ControlPacket::kAnyPort;  // of the one whose copy may follow
  while (!control_.empty()) {
    if (batch.full() || batch.with_room == 0) return false;
    ControlPacket& packet = control_.front();
    std::uint8_t port = packet.port;
    if (port == ControlPacket::kAnyPort) {
      Peer& peer = peers_[packet.peer];
      if (peer.usable(ports_up_) == 0) {
        control_.pop();  // nothing reaches that peer: it must not hold up what goes to others
        continue;
      }
      const bool elsewhere = packet.near == ControlPacket::kOtherPort;
      const bool follows = packet.near == ControlPacket::kAnyPort && packet.peer == same_peer &&
                           (batch.with_room >> same_port & 1) != 0;
      auto may_take = batch.with_room;
      if (elsewhere) {
        const auto taken = first_port == ControlPacket::kAnyPort ? peer.heard : first_port;
        may_take = static_cast<PortMask>(may_take & ~(1u << taken));
      }
      port = follows ? same_port : control_port(peer, packet.near, may_take);
      if (port == ControlPacket::kAnyPort && elsewhere) {
        control_.pop();  // a copy: not worth waiting
        continue;
      }
      if (port == ControlPacket::kAnyPort)
        return true;  // no port with room reaches that peer; data to others may go
    } else if ((ports_up_ >> port & 1) == 0) {
      control_.pop();  // asked for a port that is gone: its sender asks again
      continue;
    } else if ((batch.with_room >> port & 1) == 0) {
      return true;
    }
    const bool known = packet.peer != ControlPacket::kNoPeer;
    world::Datagram& d = batch.out[batch.count];
    d = {};
    d.port = port;
    d.ecn = packet.data_class ? world::Ecn::kEct0 : world::Ecn::kNotEct;
    d.dscp = packet.data_class ? world::Dscp::kTrimmable : world::Dscp::kControl;
    d.entropy = packet.fixed_ev ? packet.entropy : peers_[packet.peer].ways[port].reverse.ev;
    d.peer = known
                 ? peers_[packet.peer].ways[port].address
                 : world::Address{
                       .high = packet.to_high, .low = packet.to_low, .process = packet.to_process};
    auto& header = headers_[batch.count];
    std::copy_n(packet.header.begin(), packet.header_size, header.begin());
    d.header = ConstBytes(header).first(packet.header_size);
    if (trace_ != nullptr) {
      trace_datagram(now, TraceKind::kSend, d, packet.qpn,
                     known ? peers_[packet.peer].host : Peer::kNobody);
    }
    batch.took(port);
    if (packet.ask != 0) asks_.on_sent(now, packet.ask);
    ++control_packets_;
    probe_tokens_milli_ += 10;
    const std::uint32_t peer = packet.peer;
    if (config_.answers_delay > Duration() && packet.port == ControlPacket::kAnyPort &&
        packet.near == ControlPacket::kAnyPort) {
      same_peer = peer;
      same_port = port;
    }
    first_port = packet.near == ControlPacket::kHeardPort ? port : ControlPacket::kAnyPort;
    const bool confirm = known && !packet.fixed_ev && !packet.data_class;
    control_.pop();
    if (confirm) check_reverse(now, peer);
  }
  return true;
}

// Control packets rotate over the planes, so that a dead one costs its share of them, unless they
// ask for one (docs/decisions/0028). Planes whose reverse EV does not answer are left out while
// another works. Where all are in doubt they rotate over all: one of them may do.
std::uint8_t Endpoint::control_port(Peer& peer, std::uint8_t near, PortMask with_room) {
  if (near == ControlPacket::kHeardPort) near = peer.heard;
  if (peer.is_good(near, with_room)) return near;
  const auto after = [this](PortIndex port) {
    return static_cast<PortIndex>(port + 1u == port_count_ ? 0 : port + 1);
  };
  PortIndex port = peer.turn;
  std::uint8_t fallback = ControlPacket::kAnyPort;
  for (std::uint32_t tried = 0; tried < port_count_; ++tried, port = after(port)) {
    if (peer.is_good(port, with_room)) {
      peer.turn = after(port);
      return port;
    }
    const bool possible = (peer.usable(with_room) >> port & 1) != 0;
    if (possible && fallback == ControlPacket::kAnyPort) fallback = port;
  }
  if (fallback == ControlPacket::kAnyPort || near == ControlPacket::kOtherPort)
    return ControlPacket::kAnyPort;
  // A plane in doubt is better than silence only when no other plane could ever do.
  for (std::uint32_t other = 0; other < port_count_; ++other) {
    if (peer.is_good(static_cast<PortIndex>(other), ports_up_)) return ControlPacket::kAnyPort;
  }
  peer.turn = after(fallback);
  return fallback;
}

// A control packet went out to this peer: a moment to look at one of its reverse EVs. If nothing
// confirmed it for a while, ask; if the question was not answered soon, ask it again over another
// EV of the plane.
void Endpoint::check_reverse(Time now, std::uint32_t peer_index) {
  Peer& peer = peers_[peer_index];
  if (peer.first_qp == Peer::kNobody) return;  // its QPs are gone: no EVs to choose from
  // One plane a time, also those that carry no control packets any more.
  const auto port = static_cast<PortIndex>(prng_.below(port_count_));
  Peer::Reverse& reverse = peer.ways[port].reverse;
  if (!reverse.present || ((ports_up_ & peer.reachable) >> port & 1) == 0) return;
  if (reverse.request_id != 0) {
    if (now - reverse.asked_at < config_.reverse_confirm / 2) return;
    if (peer.answered_open_at > reverse.open_at) {
      reverse.open_at = now;
      if (reverse.failures < Peer::kFailuresMax) ++reverse.failures;
    }
    const Qp& qp = *qps_[peer.first_qp];
    const PathSet& paths = qp.requestor.paths();
    const auto slot = paths.any_on(port, static_cast<std::uint32_t>(prng_.next() >> 32));
    if (slot != PathSet::kNone) reverse.ev = paths.ev(slot).value;
  } else if (now - std::max(reverse.confirmed_at, reverse.asked_at) < config_.reverse_confirm) {
    return;
  }
  if (!take_probe_token(now)) return;
  ControlPacket* packet = control_.add();
  if (packet == nullptr) return;
  ++reverse_probes_;
  if (reverse.request_id == 0) {
    reverse.request_id = take_request_id();
    reverse.open_at = now;
  }
  reverse.asked_at = now;
  packet->peer = peer_index;
  packet->port = port;
  packet->fixed_ev = true;
  packet->entropy = reverse.ev;
  packet->data_class = true;
  write_header(*packet,
               {.opcode = wire::Opcode::kEndpointRequest,
                .dest_qpn = wire::kEndpointQpn,
                .psn = Psn(reverse.request_id)},
               wire::EndpointRequest{.op = wire::EndpointOp::kEvProbe});
}

// Budget of reverse probes: one for 100 packets sent, and 1,000 a second.
bool Endpoint::take_probe_token(Time now) {
  const std::int64_t whole_us = (now - probe_tokens_at_).us();
  probe_tokens_milli_ += whole_us;
  probe_tokens_at_ += Duration::us(whole_us);
  probe_tokens_milli_ = std::min<std::int64_t>(probe_tokens_milli_, 16'000);
  if (probe_tokens_milli_ < 1000) return false;
  probe_tokens_milli_ -= 1000;
  return true;
}

void Endpoint::transmit_data(Time now, Batch& batch) {
  auto c = context(now);
  std::size_t idle = 0;  // QPs in a row that had no port
  std::uint32_t run = 0;
  bool enough = false;
  while (!ready_.empty() && !batch.full() && batch.with_room != 0 && idle < ready_.size() &&
         !enough) {
    const std::uint32_t index = ready_.front();
    Qp& qp = *qps_[index];
    Peer& peer = peers_[qp.peer];
    Requestor::Outgoing out;
    const auto usable = static_cast<PortMask>(batch.with_room & peer.reachable);
    const auto polled = qp.may_send() ? qp.requestor.poll(c, usable, headers_[batch.count], out)
                                      : Requestor::Polled::kNothing;
    if (polled == Requestor::Polled::kPacket) {
      hot(Call::kPoll) = {qp.head(), qp.requestor.hot(), peer.part(port_count_),
                          qp.requestor.paths().hot()};
      world::Datagram& d = batch.out[batch.count];
      d.port = out.ev.port;
      d.ecn = world::Ecn::kEct0;
      d.dscp = out.dscp;
      d.intact = true;
      d.entropy = out.ev.value;
      d.peer = peer.ways[out.ev.port].address;
      d.header = ConstBytes(headers_[batch.count]).first(out.header_size);
      d.payload = out.payload;
      if (trace_ != nullptr) trace_datagram(now, TraceKind::kSend, d, qp.qpn, peer.host);
      batch.took(out.ev.port);
      peer.data_at = now;
      probe_tokens_milli_ += 10;
      idle = 0;
      deadlines_.at_latest(index, qp.requestor.deadline());
      if (++run < config_.burst && !qp.requestor.is_run_over()) continue;
      // Between turns is where a batch ends, so that no run of full packets is cut in two.
      enough = config_.burst > 1 && batch.count >= world::kBatchMin;
      if (ready_.size() == 1) {
        run = 0;
        continue;
      }
    } else if (polled == Requestor::Polled::kNoPort) {
      ++idle;
    } else {
      // Nothing but time may open its window: then it is called at that time.
      deadlines_.at_latest(index, qp.requestor.deadline());
      qp.ready = false;
      ready_.pop();
      run = 0;
      continue;
    }
    // The next QP's turn.
    ready_.pop();
    ready_.push(index);
    run = 0;
  }
}

Result<void> Endpoint::post_endpoint_request(Time now, const EndpointAsk& ask) {
  if (ask.port >= port_count_) return Error{ErrorKind::kInvalid, "no such port"};
  if (asks_.has(ask.id)) return Error{ErrorKind::kInvalid, "id under way"};
  ControlPacket* const packet = asks_.full() ? nullptr : control_.add();
  if (packet == nullptr) return Error{ErrorKind::kExhausted, "queue is full"};
  const std::uint16_t id = take_request_id();
  asks_.add(now, ask, id);
  packet->ask = id;
  packet->port = ask.port;
  packet->fixed_ev = true;
  packet->entropy = ask.ev;
  packet->data_class = ask.traffic == AskClass::kData;
  packet->to_high = ask.to.high;
  packet->to_low = ask.to.low;
  packet->to_process = ask.to.process;
  write_header(
      *packet,
      {.opcode = wire::Opcode::kEndpointRequest, .dest_qpn = wire::kEndpointQpn, .psn = Psn(id)},
      wire::EndpointRequest{.op = ask.op, .port_status = ask.port_status});
  return {};
}

}  // namespace weft::transport
