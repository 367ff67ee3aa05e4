#include "transport/requestor.h"

#include <algorithm>

#include "base/assert.h"

namespace weft::transport {

Requestor::Requestor(const Options& options, std::span<const fabric::Ev> evs)
    : params_(options.params),
      writes_(options.send_queue_max, options.params->mtu),
      window_(*options.pool, options.params->config.mpr * 128, options.first_psn),
      nscc_(options.params->nscc, Time()),
      retry_(options.params->config.retry),
      window_end_(options.first_psn + static_cast<std::int32_t>(options.params->config.mpr * 128)),
      acknowledged_(options.first_psn - 1),
      paths_(options.paths, evs) {
  WEFT_ASSERT(options.params->burst > 0);
}

void Requestor::start(Time now, const QpEnds& ends) {
  WEFT_ASSERT(window_.is_idle());
  qp_ = ends;
  last_heard_ = now;
  nscc_ = Nscc(params_->nscc, now);
}

void Requestor::post(Time now, const WriteRequest& request) {
  writes_.post(request);
  retry_.arm(now);  // armed now: must also expire if no port ever takes a packet of the write
}

std::int64_t Requestor::nominal_size(Psn psn, const PsnRecord& record) const {
  if (record.full) return writes_.full_size();
  return WriteQueue::nominal_size(writes_.piece_of(psn, writes_.entry_of(psn)));
}

Requestor::Polled Requestor::poll(Context& context, PortMask usable, Bytes header, Outgoing& out) {
  WEFT_ASSERT(header.size() >= wire::kHeaderSizeMax);
  if (completion_resend_) return poll_completion_resend(context, usable, header, out);
  if (window_.lost() > 0 && context.now >= resume_at_)
    return poll_lost(context, usable, header, out);
  if (writes_.has_unsent()) return poll_new(context, usable, header, out);
  return Polled::kNothing;
}

// The packet's share of a burst: its size in sixteenths of a full packet, rounded up, at least 1. A
// burst holds more small packets than full ones, because a change of EV costs both ends more than a
// small packet. The minimum keeps bursts of empty packets finite.
std::uint32_t Requestor::part_of_burst(const Piece& p) const {
  return std::max((kFullPart * p.size + params_->mtu - 1) / params_->mtu, 1u);
}

// Bursts of up to `burst` full packets, or more small ones, stay on one EV. A retransmission avoids
// the plane of the lost copy, or at least its EV. New packets follow it in the same burst, so that
// it costs no burst of its own.
PathSet::Slot Requestor::pick(Time now, PortMask usable, const Piece& p, PathSet::Slot avoid) {
  auto living = static_cast<PortMask>(usable & ~paths_.planes_down());
  if (avoid != PathSet::kNone) {
    const auto others = static_cast<PortMask>(living & ~(1u << paths_.ev(avoid).port));
    if (paths_.any_in_rotation(others)) living = others;
  }
  if (burst_.left > 0 && burst_.slot != avoid && (living >> paths_.ev(burst_.slot).port & 1) != 0 &&
      paths_.state(burst_.slot) == EvState::kGood) {
    burst_.left -= std::min(burst_.left, part_of_burst(p));
    return burst_.slot;
  }
  PathSet::Slot slot = PathSet::kNone;
  if (avoid != PathSet::kNone) slot = paths_.next(now, living, nscc_.base_rtt());
  if (slot == PathSet::kNone) slot = paths_.next(now, usable, nscc_.base_rtt());
  if (slot == avoid && slot != PathSet::kNone) {
    if (const PathSet::Slot other = paths_.next(now, usable, nscc_.base_rtt());
        other != PathSet::kNone) {
      slot = other;
    }
  }
  const bool alone = slot == PathSet::kNone || sends_singly();
  burst_ = {.slot = slot, .left = alone ? 0 : burst_packets() * kFullPart - part_of_burst(p)};
  return slot;
}

Requestor::Polled Requestor::poll_lost(Context& context, PortMask usable, Bytes header,
                                       Outgoing& out) {
  const Psn psn = window_.first_lost();
  PsnRecord& record = window_.record(psn);
  const WriteQueue::Entry& entry = writes_.entry_of(psn);
  const Piece p = writes_.piece_of(psn, entry);
  const std::int64_t size = WriteQueue::nominal_size(p);
  if (!nscc_.allows(size) || nscc_.paced_until() > context.now) return Polled::kWindowClosed;
  const PathSet::Slot slot = pick(context.now, usable, p, record.ev);
  if (slot == PathSet::kNone) return Polled::kNoPort;
  window_.sent(psn, record, context.now, slot);
  nscc_.on_send(size);
  ++context.counters.retransmits[paths_.ev(slot).port];
  emit(context, entry, p, {.psn = psn, .slot = slot, .rtx = true, .ack_request = true}, header,
       out);
  arm_timers(context);
  return Polled::kPacket;
}

// A burst is at most a quarter of the window: a small window sent in a single burst would overflow
// a small queue. It is at most half of the peer's receive budget.
std::uint32_t Requestor::burst_packets() const {
  if (sends_singly()) return 1;
  const std::int64_t bytes = std::min(nscc_.window() / 4, nscc_.limit() / 2);
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(bytes / params_->nscc.window_min, 1, params_->burst));
}

// A burst that the window would cut is not begun: one packet costs a world as much as a burst of
// packets.
std::int64_t Requestor::size_to_begin(const WriteQueue::Entry& entry, std::int64_t size) const {
  if (sends_singly() || burst_.left > 0) return size;
  const std::uint32_t left = writes_.packet_count(entry) - entry.packets_sent;
  const std::uint32_t packets =
      writes_.is_last_unsent() ? std::min(left, burst_packets()) : burst_packets();
  return std::max(size, size * packets);
}

// A SACK is requested four times per window. Where a quarter of the window is less than a burst, a
// SACK is requested when the window may have no room for the next burst or for the rest of this
// one: the peer's SACK then opens the window for as much as has arrived.
bool Requestor::needs_ack_request(std::int64_t size) const {
  const std::int64_t allowance = nscc_.allowance(), run_bytes = burst_packets() * size;
  if (sends_singly() || allowance >= 4 * run_bytes)
    return bytes_since_ack_request_ >= std::max(allowance / 4, run_bytes);
  const std::int64_t full_size = writes_.full_size();
  return !nscc_.allows(burst_.left > 0 ? full_size : burst_packets() * full_size);
}

Requestor::Polled Requestor::poll_new(Context& context, PortMask usable, Bytes header,
                                      Outgoing& out) {
  const WriteQueue::Entry& entry = writes_.first_unsent();
  if (window_.next().since(window_end_) >= 0) return Polled::kWindowClosed;
  if (entry.packets_sent == 0 && entry.request.with_immediate &&
      writes_.immediates_under_way() >= params_->config.wimm_max) {
    return Polled::kWindowClosed;
  }
  const Piece p = writes_.piece(entry, entry.packets_sent);
  const std::int64_t size = WriteQueue::nominal_size(p);
  if (!nscc_.allows(size_to_begin(entry, size)) || nscc_.paced_until() > context.now)
    return Polled::kWindowClosed;
  const PathSet::Slot slot = pick(context.now, usable, p, PathSet::kNone);
  if (slot == PathSet::kNone) return Polled::kNoPort;
  PsnRecord* record = window_.open();
  if (record == nullptr) return Polled::kNoPort;  // acknowledgements free records
  const Psn psn = window_.next() - 1;
  record->full = p.size == params_->mtu && !wire::has_immediate(p.opcode);
  window_.sent(psn, *record, context.now, slot);
  nscc_.on_send(size);
  opened_bytes_ += size;
  bytes_since_ack_request_ += size;
  const bool is_last = wire::ends_message(p.opcode) && writes_.is_last_unsent();
  writes_.on_sent(psn);
  const bool ack_request = is_last || needs_ack_request(size);
  if (ack_request) bytes_since_ack_request_ = 0;
  emit(context, entry, p, {.psn = psn, .slot = slot, .ack_request = ack_request}, header, out);
  arm_timers(context);
  return Polled::kPacket;
}

// Sends the last packet of the oldest incomplete message once more. It lies at or below the
// responder's cumulative PSN, is not placed, and is answered with SACK and Transport ACK. It does
// not count in inflight, and says nothing about any EV.
Requestor::Polled Requestor::poll_completion_resend(Context& context, PortMask usable, Bytes header,
                                                    Outgoing& out) {
  if (!writes_.has_incomplete()) {
    completion_resend_ = false;
    return Polled::kNothing;
  }
  const WriteQueue::Entry& entry = writes_.oldest();
  const Piece p = writes_.piece_of(entry.last, entry);
  const PathSet::Slot slot = pick(context.now, usable, p, PathSet::kNone);
  if (slot == PathSet::kNone) return Polled::kNoPort;
  completion_resend_ = false;
  ++context.counters.completion_resends;
  emit(context, entry, p, {.psn = entry.last, .slot = slot, .rtx = true, .ack_request = true},
       header, out);
  return Polled::kPacket;
}

void Requestor::emit(Context& context, const WriteQueue::Entry& entry, const Piece& p,
                     const Copy& copy, Bytes header, Outgoing& out) {
  const wire::Bth bth{.opcode = p.opcode,
                      .solicited = entry.request.solicited && wire::ends_message(p.opcode),
                      .pad = static_cast<std::uint8_t>(-p.size & 3),
                      .dest_qpn = qp_.peer_qpn,
                      .ack_request = copy.ack_request,
                      .rtx = copy.rtx,
                      .psn = copy.psn};
  const wire::Write write{.rqmsn = entry.rqmsn,
                          .msn = entry.msn,
                          .sent = timestamp(context.now),
                          .va = entry.request.remote_at + p.offset,
                          .rkey = entry.request.rkey,
                          .message_size = entry.request.size,
                          .immediate = wire::has_immediate(p.opcode) ? entry.request.immediate : 0};
  out.header_size = static_cast<std::uint8_t>(wire::emit(bth, write, header));
  out.ev = paths_.ev(copy.slot);
  out.payload = {.at = entry.request.local_at + p.offset, .size = p.size};
  out.dscp = !params_->config.trim_nack ? world::Dscp::kNoTrim
             : copy.rtx                 ? world::Dscp::kTrimmableRetx
                                        : world::Dscp::kTrimmable;
  ++context.counters.packets[out.ev.port];
  context.counters.bytes[out.ev.port] += p.size;
  last_send_ = context.now;
}

void Requestor::fail(Status status) {
  writes_.fail(status, refused_ ? &*refused_ : nullptr);
  window_.clear();
  nscc_.settle();
  opened_bytes_ = nscc_.accounted();  // packets that are lost and not retransmitted never arrive
  retry_.disarm();
  tail_.disarm();
  completion_resend_ = false;
}

}  // namespace weft::transport
