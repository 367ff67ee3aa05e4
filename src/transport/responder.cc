#include "transport/responder.h"

#include <algorithm>
#include <bit>

namespace weft::transport {

Responder::Responder(const Options& options) : options_(options) {
  WEFT_ASSERT(options.window > 0 && options.peer != nullptr);
  const std::uint32_t words = std::bit_ceil((options.window + 63) / 64);
  received_ = std::make_unique<std::uint64_t[]>(2 * static_cast<std::size_t>(words));
  ends_ = received_.get() + words;
  word_mask_ = words - 1;
  immediates_ = std::make_unique_for_overwrite<Immediate[]>(options.wimm_max);
}

void Responder::start(Psn first, const QpEnds& ends) {
  qp_ = ends;
  cack_ = max_received_ = first - 1;
  cack_at_last_probe_ = cack_at_last_sack_ = first - 2;  // no SACK and no probe yet
  unreported_ = first;
}

Status Responder::on_write_packet(const Arrival& arrival, world::Memory& memory, ReceiveSide side,
                                  ControlQueue& out, ResponderCounters& counters) {
  const Psn psn = arrival.bth.psn;
  const std::int32_t ahead = psn.since(cack_);
  if (ahead > static_cast<std::int32_t>(options_.window)) {
    on_out_of_window(arrival, out, counters);
    return Status::kOk;
  }
  if (is_received(psn)) {
    on_duplicate(arrival, out, counters);
    return Status::kOk;
  }
  if (arrival.trimmed) {
    on_trimmed(arrival, out, counters);
    return Status::kOk;
  }
  const wire::AckSyndrome placed = place(arrival, memory, counters);
  if (placed != wire::AckSyndrome::kAck) return refuse(placed, psn, out, counters);
  set_received(arrival);
  const Status status = ahead == 1 ? advance(side, out, counters) : Status::kOk;
  note_trigger(arrival, is_sack_due(arrival), out, counters);
  return status;
}

// At most one NACK per interval: the requestor needs no more.
void Responder::on_out_of_window(const Arrival& arrival, ControlQueue& out,
                                 ResponderCounters& counters) {
  ++counters.out_of_window;
  if (arrival.now < out_of_window_next_) return;
  out_of_window_next_ = arrival.now + options_.nack_interval;
  send_nack(arrival, wire::NackReason::kPsnOutOfWindow, out, counters);
}

// A duplicate is never placed. At or below the cumulative PSN the requestor may lack our Transport
// ACK.
void Responder::on_duplicate(const Arrival& arrival, ControlQueue& out,
                             ResponderCounters& counters) {
  ++counters.duplicates;
  if (arrival.bth.psn.since(cack_) <= 0) ack_due_ = true;
  note_trigger(arrival, true, out, counters);
}

void Responder::on_trimmed(const Arrival& arrival, ControlQueue& out, ResponderCounters& counters) {
  ++counters.trimmed;
  if (!options_.trim_nack) return;
  send_nack(
      arrival,
      arrival.trimmed_last_hop ? wire::NackReason::kTrimmedLastHop : wire::NackReason::kTrimmed,
      out, counters);
}

wire::AckSyndrome Responder::place(const Arrival& arrival, world::Memory& memory,
                                   ResponderCounters& counters) {
  const wire::Write& write = arrival.write;
  const std::uint32_t size = arrival.payload.size;
  const std::uint32_t mtu = arrival.unlisted ? options_.mtu_unlisted : options_.mtu;
  if (size > mtu || size > write.message_size) return wire::AckSyndrome::kNakInvalidRequest;
  world::Region region{.at = write.va, .size = size};
  const world::RegionQuery query{
      .key = write.rkey, .at = write.va, .size = size, .domain = options_.domain};
  if (size > 0 && !memory.region(query, region)) return wire::AckSyndrome::kNakRemoteAccess;
  if (wire::has_immediate(arrival.bth.opcode) && !stash_immediate(arrival))
    return wire::AckSyndrome::kNakInvalidRequest;
  if (size > 0) memory.place(region, arrival.payload);
  ++counters.packets_placed[arrival.port];
  counters.bytes_placed[arrival.port] += size;
  return wire::AckSyndrome::kAck;
}

void Responder::set_received(const Arrival& arrival) {
  const Psn psn = arrival.bth.psn;
  WEFT_ASSERT(!is_received(psn));
  set(received_.get(), psn);
  if (wire::ends_message(arrival.bth.opcode)) set(ends_, psn);
  bytes_received_ += arrival.nominal_size;
  if (bytes_since_sack_ == 0)
    sack_with_holes_at_ = arrival.now + options_.peer->sack_interval_with_holes;
  bytes_since_sack_ += std::max(arrival.nominal_size, 1024u);
  ++above_cack_;
  WEFT_ASSERT(above_cack_ <= options_.window);
  if (psn.since(max_received_) > 0) max_received_ = psn;
  if (psn.since(unreported_) < 0) note_late(psn);
}

// Called after the cumulative PSN moved. A SACK request that found holes is remembered: another
// SACK is due when the holes are closed.
bool Responder::is_sack_due(const Arrival& arrival) {
  const wire::Bth& bth = arrival.bth;
  bool due = bth.ack_request || bth.rtx || arrival.marked || first_ ||
             bytes_since_sack_ >= options_.sack_bytes || is_sack_due_for_holes(arrival.now);
  first_ = false;
  if (bth.ack_request && above_cack_ > 0) sack_requested_with_holes_ = true;
  if (sack_requested_with_holes_ && above_cack_ == 0) {
    sack_requested_with_holes_ = false;
    due = true;
  }
  return due;
}

// Remembers the packet that the next SACK reflects. The packets of one burst share one SACK. The
// first packet on another EV sends the SACK of the burst before.
void Responder::note_trigger(const Arrival& arrival, bool due, ControlQueue& out,
                             ResponderCounters& counters) {
  if (trigger_.due && trigger_.entropy != arrival.entropy) flush_sack(out, counters);
  trigger_.marked = (trigger_.due && trigger_.marked) || arrival.marked;
  trigger_.due = trigger_.due || due;
  trigger_.psn = arrival.bth.psn;
  trigger_.entropy = arrival.entropy;
  trigger_.rtx = arrival.bth.rtx;
  trigger_.sent = arrival.write.sent;
}

// Moves the cumulative PSN over all PSNs that have arrived. Messages completed by that are
// acknowledged and delivered.
Status Responder::advance(ReceiveSide side, ControlQueue& out, ResponderCounters& counters) {
  while (test(received_.get(), cack_ + 1)) {
    const Psn psn = cack_ + 1;
    WEFT_ASSERT(above_cack_ > 0);
    reset(received_.get(), psn);
    --above_cack_;
    cack_ = psn;
    if (!test(ends_, psn)) continue;
    reset(ends_, psn);
    if (immediate_count_ > 0 && immediates_[0].psn() == psn) {
      const wire::AckSyndrome syndrome = deliver(take_first_immediate(), side);
      if (syndrome != wire::AckSyndrome::kAck) {
        drop_reports_below_cack();
        return refuse(syndrome, psn, out, counters);
      }
    }
    ++msn_;
    ack_due_ = true;
  }
  drop_reports_below_cack();
  return Status::kOk;
}

// The cumulative PSN in each SACK reports everything up to it: no bitmap needs to.
void Responder::drop_reports_below_cack() {
  if (unreported_.since(cack_) <= 0) unreported_ = cack_ + 1;
  if (has_late_ && late_first_.since(cack_) <= 0) late_first_ = cack_ + 1;
  has_late_ = has_late_ && late_last_.since(cack_) > 0;
}

// Notes a packet that arrived after its neighbours were reported, as a retransmission does.
void Responder::note_late(Psn psn) {
  if (!has_late_ || psn.since(late_first_) < 0) late_first_ = psn;
  if (!has_late_ || psn.since(late_last_) > 0) late_last_ = psn;
  has_late_ = true;
}

// Keeps an immediate until the cumulative PSN passes its message. False if as many wait as were
// agreed.
bool Responder::stash_immediate(const Arrival& arrival) {
  if (immediate_count_ == options_.wimm_max) return false;
  std::uint16_t at = immediate_count_++;
  while (at > 0 && immediates_[at - 1].psn().since(arrival.bth.psn) > 0) {
    immediates_[at] = immediates_[at - 1];
    --at;
  }
  immediates_[at] = {.last_psn = arrival.bth.psn.value(),
                     .value = arrival.write.immediate,
                     .size = arrival.write.message_size,
                     .rqmsn = arrival.write.rqmsn,
                     .solicited = arrival.bth.solicited};
  return true;
}

Responder::Immediate Responder::take_first_immediate() {
  WEFT_ASSERT(immediate_count_ > 0);
  const Immediate first = immediates_[0];
  std::copy(&immediates_[1], &immediates_[immediate_count_], &immediates_[0]);
  --immediate_count_;
  return first;
}

// PSN order is post order, so rqmsn adds no information. It is only checked, counting from 0 or
// from 1.
wire::AckSyndrome Responder::deliver(const Immediate& immediate, ReceiveSide side) {
  const bool follows = next_rqmsn_ ? immediate.rqmsn == *next_rqmsn_ : immediate.rqmsn <= 1;
  if (!follows) return wire::AckSyndrome::kNakInvalidRequest;
  next_rqmsn_ = static_cast<std::uint16_t>(immediate.rqmsn + 1);
  if (side.receives.empty() || side.completions.full())
    return wire::AckSyndrome::kNakRemoteOperational;
  side.completions.push({.id = side.receives.front(),
                         .qpn = qp_.local_qpn,
                         .kind = CompletionKind::kReceiveImmediate,
                         .status = Status::kOk,
                         .size = immediate.size,
                         .immediate = immediate.value,
                         .solicited = immediate.solicited});
  side.receives.pop();
  return wire::AckSyndrome::kAck;
}

Status Responder::refuse(wire::AckSyndrome syndrome, Psn psn, ControlQueue& out,
                         ResponderCounters& counters) {
  nak_ = wire::TransportAck{.syndrome = syndrome, .msn = msn_ & 0xff'ffff};
  nak_psn_ = psn;
  ++counters.naks;
  repeat_nak(out);
  return Status::kLocalAccess;
}

bool Responder::repeat_nak(ControlQueue& out) const {
  if (!nak_) return false;
  if (ControlPacket* packet = out.add()) {
    packet->peer = qp_.peer;
    packet->qpn = qp_.local_qpn;
    write_header(*packet,
                 {.opcode = wire::Opcode::kTransportAck, .dest_qpn = qp_.peer_qpn, .psn = nak_psn_},
                 *nak_);
  }
  return true;
}

void Responder::send_unexpected(const wire::Bth& bth, ControlQueue& out,
                                ResponderCounters& counters) const {
  ControlPacket* packet = out.add();
  if (packet == nullptr) return;
  ++counters.nacks;
  packet->peer = qp_.peer;
  packet->qpn = qp_.local_qpn;
  write_header(*packet, {.opcode = wire::Opcode::kNack, .dest_qpn = qp_.peer_qpn, .psn = bth.psn},
               wire::Nack{.reason = wire::NackReason::kUnexpectedEvent, .psn = bth.psn});
}

void Responder::on_probe(const wire::Probe& probe, const ProbeArrival& arrival, ControlQueue& out,
                         ResponderCounters& counters) {
  wire::Sack sack = sack_state();
  sack.answers_probe = true;
  sack.probe_id = probe.probe_id;
  sack.entropy = arrival.entropy;
  sack.mark = arrival.marked ? wire::PathMark::kSkipOnce : wire::PathMark::kNone;
  sack.echo = probe.sent;
  // The bitmap begins after the cumulative PSN. While probes follow each other and the cumulative
  // PSN has not moved, every second answer reports a later part of the window.
  const bool again = cack_at_last_probe_ == cack_;
  if (!again || probe_next_.since(max_received_) > 0) probe_next_ = cack_ + 65;
  probe_walks_ = again && !probe_walks_;
  cack_at_last_probe_ = cack_;
  const Psn base = probe_walks_ ? probe_next_ : cack_ + 1;
  if (probe_walks_) probe_next_ = probe_next_ + 64;
  // A second probe with the cumulative PSN unmoved: the first answer may have been lost. The answer
  // takes another plane, since each direction may have a different dead plane.
  const bool in_turn = again && options_.peer->repeats_sacks;
  const PortChoice port = in_turn ? PortChoice::in_turn() : PortChoice::prefer(arrival.port);
  send_sack(sack, base, {.port = port}, out, counters);
}

void Responder::queue_due_answers(ControlQueue& out, ResponderCounters& counters) {
  if (trigger_.due) flush_sack(out, counters);
  if (!ack_due_ || nak_) return;
  ack_due_ = false;
  if (ControlPacket* packet = out.add()) {
    ++counters.transport_acks;
    packet->peer = qp_.peer;
    packet->qpn = qp_.local_qpn;
    write_header(*packet,
                 {.opcode = wire::Opcode::kTransportAck, .dest_qpn = qp_.peer_qpn, .psn = cack_},
                 wire::TransportAck{.msn = msn_ & 0xff'ffff});
  }
}

void Responder::flush_sack(ControlQueue& out, ResponderCounters& counters) {
  // If the cumulative PSN has not moved since the last SACK, that SACK may be lost. This SACK then
  // takes two planes: that on which data arrives, which most likely works, and another one in case
  // its reverse direction is dead.
  const bool twice = options_.peer->repeats_sacks && above_cack_ > 0 && cack_ == cack_at_last_sack_;
  const PortChoice port = twice ? PortChoice::prefer_heard() : PortChoice::in_turn();
  report({.port = port, .twice = twice}, out, counters);
  cack_at_last_sack_ = cack_;
  settle();
}

void Responder::settle() {
  trigger_ = {};
  bytes_since_sack_ = 0;
}

void Responder::report(SackRoute route, ControlQueue& out, ResponderCounters& counters) {
  wire::Sack sack = sack_state();
  sack.trigger_offset =
      static_cast<std::int16_t>(std::clamp(trigger_.psn.since(cack_), -0x8000, 0x7fff));
  sack.entropy = trigger_.entropy;
  sack.mark = trigger_.marked ? wire::PathMark::kSkipOnce : wire::PathMark::kNone;
  sack.echo = trigger_.sent;
  Psn base = trigger_.psn - 63;
  if (base.since(cack_) <= 0) base = cack_ + 1;
  // Lower PSNs that were never reported are in every second SACK.
  const Psn lowest = has_late_ ? late_first_ : unreported_;
  const bool unreported_below = lowest.since(base) < 0;
  if (unreported_below && report_low_) base = lowest;
  report_low_ = unreported_below && !report_low_;
  route.rtx = trigger_.rtx;
  send_sack(sack, base, route, out, counters);
}

wire::Sack Responder::sack_state() const {
  WEFT_ASSERT(max_received_.since(cack_) >= 0);
  wire::Sack sack;
  sack.cack = cack_;
  sack.spdcid = static_cast<std::uint16_t>(qp_.peer_qpn);
  sack.dpdcid = static_cast<std::uint16_t>(qp_.local_qpn);
  sack.mpr = limit_.mpr != 0 ? limit_.mpr
                             : static_cast<std::uint8_t>(std::min(options_.window / 128, 255u));
  sack.cwnd_penalty = limit_.cwnd_penalty;
  if (limit_.overflow) sack.cc_flags = wire::kCcFlagOverflow;
  sack.restore_cwnd = restores_window_;
  sack.ooo_count = static_cast<std::uint16_t>(std::min(above_cack_, 0x7fffu));
  sack.rcvd_bytes_256 = static_cast<std::uint32_t>((bytes_received_ + 255) / 256 & 0xff'ffff);
  return sack;
}

std::uint64_t Responder::bits_from(Psn base) const {
  const std::uint32_t word = base.value() >> 6, shift = base.value() & 63;
  std::uint64_t bits = received_[word & word_mask_] >> shift;
  if (shift != 0) bits |= received_[(word + 1) & word_mask_] << (64 - shift);
  // Beyond the window the ring wraps: those bits belong to the window's start and are cleared.
  const std::int32_t left = (cack_ + static_cast<std::int32_t>(options_.window)).since(base) + 1;
  if (left <= 0) return 0;
  return left < 64 ? bits & ((1ull << left) - 1) : bits;
}

void Responder::send_sack(const wire::Sack& state, Psn base, SackRoute route, ControlQueue& out,
                          ResponderCounters& counters) {
  ControlPacket* packet = out.add();
  if (packet == nullptr) return;
  ++counters.sacks;
  wire::Sack sack = state;
  sack.bitmap_offset = static_cast<std::int16_t>(base.since(cack_));
  sack.bitmap = bits_from(base);
  packet->peer = qp_.peer;
  packet->qpn = qp_.local_qpn;
  packet->port = route.port;
  write_header(
      *packet,
      {.opcode = wire::Opcode::kSack, .dest_qpn = qp_.peer_qpn, .rtx = route.rtx, .psn = cack_},
      sack);
  if (ControlPacket* copy = route.twice ? out.add() : nullptr) {
    *copy = *packet;
    copy->port = PortChoice::copy();
  }
  note_reported(base);
}

// Every PSN received in base .. base + 63 is reported now.
void Responder::note_reported(Psn base) {
  WEFT_ASSERT(base.since(cack_) > 0);
  Psn next = base + 64;
  if (has_late_ && late_first_.since(base) >= 0 && late_first_.since(next) < 0) {
    late_first_ = next;
    has_late_ = late_last_.since(next) >= 0;
  }
  if (unreported_.since(base) < 0 || unreported_.since(next) >= 0) return;
  while (next.since(max_received_) <= 0 && !test(received_.get(), next)) next = next + 1;
  unreported_ = next;
}

void Responder::send_nack(const Arrival& arrival, wire::NackReason reason, ControlQueue& out,
                          ResponderCounters& counters) {
  ControlPacket* packet = out.add();
  if (packet == nullptr) return;
  ++counters.nacks;
  wire::Nack nack;
  nack.reason = reason;
  nack.entropy = arrival.entropy;
  nack.spdcid = static_cast<std::uint16_t>(qp_.peer_qpn);
  nack.dpdcid = static_cast<std::uint16_t>(qp_.local_qpn);
  nack.psn = arrival.bth.psn;
  nack.echo = arrival.write.sent;
  packet->peer = qp_.peer;
  packet->qpn = qp_.local_qpn;
  write_header(*packet,
               {.opcode = wire::Opcode::kNack,
                .dest_qpn = qp_.peer_qpn,
                .rtx = arrival.bth.rtx,
                .psn = arrival.bth.psn},
               nack);
}

}  // namespace weft::transport
