#include "transport/requestor.h"

#include <algorithm>
#include <bit>

namespace weft::transport {
namespace {

// Questions at the tail of a flow, five round trips apart, before only the retry timer asks.
constexpr std::uint8_t kTailTries = 16;

}  // namespace

Requestor::Requestor(const Options& options, std::span<const fabric::Ev> evs)
    : params_(options.params),
      queue_(options.send_queue_max),
      window_(*options.pool, options.params->config.mpr * 128, options.first_psn),
      nscc_(options.params->nscc, Time()),
      paths_(options.paths, evs),
      retry_(options.params->config.retry),
      edge_(options.first_psn + static_cast<std::int32_t>(options.params->config.mpr * 128)),
      acknowledged_(options.first_psn - 1) {}

void Requestor::start(Time now, const Identity& identity) {
  identity_ = identity;
  last_heard_ = now;
  nscc_ = Nscc(params_->nscc, now);
}

void Requestor::post(const WriteRequest& request) {
  Wqe& wqe = queue_.push_slot();
  wqe = {};
  wqe.request = request;
}

std::uint32_t Requestor::packet_count(std::uint32_t size) const {
  return size == 0 ? 1 : (size - 1) / params_->mtu + 1;
}

Requestor::Piece Requestor::piece(const Wqe& wqe, std::uint32_t index) const {
  const std::uint32_t size = wqe.request.size;
  Piece p;
  p.offset = index * params_->mtu;
  p.size = std::min(size - p.offset, params_->mtu);
  const bool first = index == 0, last = p.offset + p.size == size;
  const bool immediate = wqe.request.with_immediate;
  if (last) {
    p.opcode = first ? (immediate ? wire::Opcode::kWriteOnlyImm : wire::Opcode::kWriteOnly)
                     : (immediate ? wire::Opcode::kWriteLastImm : wire::Opcode::kWriteLast);
  } else {
    p.opcode = first ? wire::Opcode::kWriteFirst : wire::Opcode::kWriteMiddle;
  }
  return p;
}

// The write that a sent PSN belongs to: few are under way, and they are in PSN order.
Requestor::Wqe& Requestor::wqe_of(Psn psn) {
  std::size_t low = done_count_, high = queue_.size();
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    const Wqe& wqe = queue_[middle];
    if (wqe.packets_sent > 0 && psn.since(wqe.first) >= 0) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return queue_[low];
}

std::int64_t Requestor::nominal_of(const Piece& p) const {
  const std::uint32_t header = wire::has_immediate(p.opcode) ? 40 : 36;
  return 8 + header + ((p.size + 3) & ~3u) + 4 + wire::kNominalOverhead;
}

std::int64_t Requestor::nominal_size(Psn psn, const PsnRecord& record) {
  if (record.full) return 8 + 36 + params_->mtu + 4 + wire::kNominalOverhead;
  const Wqe& wqe = wqe_of(psn);
  return nominal_of(piece(wqe, static_cast<std::uint32_t>(psn.since(wqe.first))));
}

// --- sending ------------------------------------------------------------------------------------------------------

Requestor::Polled Requestor::poll(Context& context, PortMask usable, Bytes header, Outgoing& out) {
  if (completion_resend_) return poll_completion_resend(context, usable, header, out);
  if (window_.lost() > 0 && context.now >= resume_at_) return poll_lost(context, usable, header, out);
  if (sent_count_ < queue_.size()) return poll_new(context, usable, header, out);
  return Polled::kNothing;
}

// Runs of up to `burst` packets stay on one EV; a retransmission avoids the EV of the copy that was lost.
PathSet::Slot Requestor::pick(Time now, PortMask usable, PathSet::Slot avoid) {
  if (run_left_ > 0 && run_slot_ != avoid && (usable >> paths_.ev(run_slot_).port & 1) != 0 &&
      paths_.state(run_slot_) == EvState::kGood) {
    --run_left_;
    return run_slot_;
  }
  PathSet::Slot slot = paths_.next(now, usable, nscc_.base_rtt());
  if (slot == avoid && slot != PathSet::kNone) {
    if (const PathSet::Slot other = paths_.next(now, usable, nscc_.base_rtt()); other != PathSet::kNone) {
      slot = other;
    }
  }
  run_slot_ = slot;
  run_left_ = slot == PathSet::kNone ? 0 : params_->burst - 1;
  return slot;
}

Requestor::Polled Requestor::poll_lost(Context& context, PortMask usable, Bytes header, Outgoing& out) {
  const Psn psn = window_.first_lost();
  PsnRecord& record = window_.record(psn);
  const std::int64_t size = nominal_size(psn, record);
  if (!nscc_.allows(size) || nscc_.paced_until() > context.now) return Polled::kWindowClosed;
  const PathSet::Slot slot = pick(context.now, usable, record.ev);
  if (slot == PathSet::kNone) return Polled::kNoPort;
  const Wqe& wqe = wqe_of(psn);
  window_.sent(psn, record, context.now, slot);
  record.counted = true;
  nscc_.on_send(size);
  ++context.counters.retransmits;
  emit(context, wqe, piece(wqe, static_cast<std::uint32_t>(psn.since(wqe.first))), psn, true, true, slot,
       header, out);
  arm(context.now);
  return Polled::kPacket;
}

bool Requestor::is_last_available() const {
  return sent_count_ + 1 == queue_.size() &&
         queue_[sent_count_].packets_sent + 1 == packet_count(queue_[sent_count_].request.size);
}

Requestor::Polled Requestor::poll_new(Context& context, PortMask usable, Bytes header, Outgoing& out) {
  Wqe& wqe = queue_[sent_count_];
  if (window_.next().since(edge_) >= 0) return Polled::kWindowClosed;
  const bool starts = wqe.packets_sent == 0;
  if (starts && wqe.request.with_immediate && wimm_under_way_ >= params_->config.wimm_max) {
    return Polled::kWindowClosed;
  }
  const Piece p = piece(wqe, wqe.packets_sent);
  const std::int64_t size = nominal_of(p);
  if (!nscc_.allows(size) || nscc_.paced_until() > context.now) return Polled::kWindowClosed;
  const PathSet::Slot slot = pick(context.now, usable, PathSet::kNone);
  if (slot == PathSet::kNone) return Polled::kNoPort;
  PsnRecord* record = window_.open();
  if (record == nullptr) return Polled::kNoPort;  // no records left: acknowledgements free some
  const Psn psn = window_.next() - 1;
  if (starts) {
    wqe.first = psn;
    wqe.last = psn + static_cast<std::int32_t>(packet_count(wqe.request.size) - 1);
    wqe.msn = next_msn_++;
    if (wqe.request.with_immediate) {
      wqe.rqmsn = next_rqmsn_++;
      ++wimm_under_way_;
    }
  }
  const bool last_available = is_last_available();
  record->full = p.size == params_->mtu && !wire::has_immediate(p.opcode);
  window_.sent(psn, *record, context.now, slot);
  record->counted = true;
  nscc_.on_send(size);
  bytes_since_ask_ += size;
  const std::int64_t ask_every = std::max<std::int64_t>(nscc_.window() / 4, params_->burst * size);
  const bool ask = last_available || bytes_since_ask_ >= ask_every;
  if (ask) bytes_since_ask_ = 0;
  emit(context, wqe, p, psn, false, ask, slot, header, out);
  if (++wqe.packets_sent == packet_count(wqe.request.size)) ++sent_count_;
  arm(context.now);
  return Polled::kPacket;
}

// The last packet of the oldest incomplete message once more: it lies below the responder's edge, is not placed, and is
// answered with SACK and Transport ACK. Not in inflight; says nothing about any EV.
Requestor::Polled Requestor::poll_completion_resend(Context& context, PortMask usable, Bytes header,
                                                    Outgoing& out) {
  const PathSet::Slot slot = pick(context.now, usable, PathSet::kNone);
  if (slot == PathSet::kNone) return Polled::kNoPort;
  completion_resend_ = false;
  if (done_count_ >= queue_.size()) return Polled::kNothing;
  const Wqe& wqe = queue_[done_count_];
  ++context.counters.completion_resends;
  emit(context, wqe, piece(wqe, static_cast<std::uint32_t>(wqe.last.since(wqe.first))), wqe.last, true, true,
       slot, header, out);
  return Polled::kPacket;
}

void Requestor::emit(Context& context, const Wqe& wqe, const Piece& p, Psn psn, bool rtx, bool ask,
                     PathSet::Slot slot, Bytes header, Outgoing& out) {
  const wire::Bth bth{.opcode = p.opcode,
                      .solicited = wqe.request.solicited && wire::ends_message(p.opcode),
                      .pad = static_cast<std::uint8_t>(-p.size & 3),
                      .dest_qpn = identity_.peer_qpn,
                      .ack_request = ask,
                      .rtx = rtx,
                      .psn = psn};
  const wire::Write write{.rqmsn = wqe.rqmsn,
                          .msn = wqe.msn,
                          .sent = timestamp(context.now),
                          .va = wqe.request.remote_at + p.offset,
                          .rkey = wqe.request.rkey,
                          .message_size = wqe.request.size,
                          .immediate = wire::has_immediate(p.opcode) ? wqe.request.immediate : 0};
  out.header_size = static_cast<std::uint8_t>(wire::emit(bth, write, header));
  out.ev = paths_.ev(slot);
  out.payload = {.at = wqe.request.local_at + p.offset, .size = p.size};
  out.dscp = !params_->config.trim_nack ? world::Dscp::kNoTrim
             : rtx                      ? world::Dscp::kTrimmableRetx
                                        : world::Dscp::kTrimmable;
  ++context.counters.packets;
  context.counters.bytes += p.size;
  last_send_ = context.now;
}

// --- hearing --------------------------------------------------------------------------------------------------------

void Requestor::on_heard(Context& context) {
  last_heard_ = context.now;
  silent_ = false;
  if (!retry_.is_backed_off()) return;
  // The peer is back: ask at once what it has instead of waiting out the interval.
  retry_.reset(context.now);
  if (window_.outstanding() > 0) probe(context, ControlPacket::kAnyPort, ProbeClass::kData);
}

void Requestor::acknowledge(Context& context, Psn psn) {
  PsnRecord& record = window_.record(psn);
  if (record.state == PsnState::kReceived) return;
  if (record.state == PsnState::kLost) {
    // Declared lost, not sent again, and there after all.
    ++context.counters.spurious;
    loss_.on_spurious(nscc_.base_rtt());
    nscc_.on_unlost(nominal_size(psn, record));
    if (record.blamed && paths_.on_unlost(context.now, record.ev)) {
      ++context.counters.evs_withdrawn;
      context.prober.forget(identity_.peer, paths_.ev(record.ev));
    }
  } else {
    if (record.copies > 1 && context.now - record.sent_at() < nscc_.base_rtt() / 2) {
      // Too soon for the second copy: the first had arrived.
      ++context.counters.spurious;
      loss_.on_spurious(nscc_.base_rtt());
    }
    paths_.on_ack(record.ev);
  }
  window_.receive(psn, record);
}

bool Requestor::advance(Context& context, Psn cack) {
  if (cack.since(window_.cack()) <= 0) return false;
  for (Psn psn = window_.cack() + 1; psn.since(cack) <= 0; psn = psn + 1) acknowledge(context, psn);
  window_.advance(cack);
  return true;
}

bool Requestor::take_bits(Context& context, const wire::Sack& sack) {
  const Psn base = sack.cack + sack.bitmap_offset;
  const std::uint32_t before = window_.received_above_cack();
  for (std::uint64_t bits = sack.bitmap; bits != 0; bits &= bits - 1) {
    const Psn psn = base + std::countr_zero(bits);
    if (window_.contains(psn)) acknowledge(context, psn);
  }
  return window_.received_above_cack() != before;
}

bool Requestor::on_sack(Context& context, const wire::Bth& bth, const wire::Sack& sack) {
  // A peer that acknowledges what was never sent is not believed at all.
  if (window_.next().since(sack.cack) <= 0) return false;
  const std::uint32_t newly_256 = (sack.rcvd_bytes_256 - rcvd_bytes_256_) & 0xff'ffff;
  const bool newest = newly_256 < 0x80'0000;

  // Which copy of which packet triggered this, and when was it sent?
  Nscc::SackSample sample;
  sample.marked = sack.mark == wire::PathMark::kSkipOnce;
  Time trigger_sent = kNever;
  PathSet::Slot slot = PathSet::kNone;
  if (sack.answers_probe) {
    const auto age = static_cast<std::uint16_t>(next_probe_ - sack.probe_id);
    if (age >= 1 && age <= probe_sent_.size()) trigger_sent = probe_sent_[sack.probe_id % probe_sent_.size()];
    if (sample.marked) slot = paths_.find(sack.entropy);
  } else if (const Psn psn = sack.cack + sack.trigger_offset; window_.contains(psn)) {
    const PsnRecord& record = window_.record(psn);
    if (timestamp(record.sent_at()) == sack.echo) {
      trigger_sent = record.sent_at();
      sample.rtt_valid = record.copies == 1 || bth.rtx;
      sample.rtt = context.now - record.sent_at();
      sample.full_size = record.full;
      slot = record.ev;
    }
  }
  if (sack.mark != wire::PathMark::kNone && slot == PathSet::kNone) slot = paths_.find(sack.entropy);

  bool progress = advance(context, sack.cack);
  if (progress) retry_.reset(context.now);
  progress = take_bits(context, sack) || progress;
  if (progress) {
    if (retry_.is_armed()) retry_.restart(context.now);
    tail_count_ = 0;
  }

  if (slot != PathSet::kNone && slot < paths_.size()) {
    if (sack.mark == wire::PathMark::kSkipOnce) {
      ++context.counters.marks;
      paths_.on_mark(slot);
    } else if (sack.mark == wire::PathMark::kAlwaysSkip) {
      if (context.prober.watch(context.now, identity_.peer, paths_.ev(slot), false) &&
          paths_.condemn(context.now, slot)) {
        ++context.counters.evs_condemned;
      }
    } else {
      paths_.on_clean_echo(slot);
    }
  }
  if (newest) {
    rcvd_bytes_256_ = sack.rcvd_bytes_256;
    sample.newly = static_cast<std::int64_t>(newly_256) * 256;
  }
  sample.penalty = sack.cwnd_penalty;
  sample.restore = sack.restore_cwnd;
  nscc_.on_sack(context.now, sample);
  if (sample.rtt_valid) loss_.on_delay(std::max(sample.rtt - nscc_.base_rtt(), Duration()));

  if (params_->config.dynamic_mpr && sack.mpr != 0) {
    // The right edge never moves left, and the ring bounds it.
    const std::uint32_t span = std::min<std::uint32_t>(sack.mpr * 128u, window_.window_max());
    const Psn edge = window_.cack() + 1 + static_cast<std::int32_t>(span);
    if (edge.since(edge_) > 0) edge_ = edge;
  } else {
    edge_ = window_.cack() + 1 + static_cast<std::int32_t>(params_->config.mpr * 128);
  }
  if (trigger_sent != kNever) {
    infer_losses(context, sack, trigger_sent,
                 knowledge(newest, sack.ooo_count, window_.received_above_cack()));
  }
  retire(context);
  trace_window(context);
  return true;
}

void Requestor::infer_losses(Context& context, const wire::Sack& sack, Time trigger_sent, Knowledge known) {
  const Time threshold = trigger_sent - loss_.reorder_window(nscc_.base_rtt());
  if (window_.outstanding() == 0) return;
  if (window_.record(window_.oldest()).sent_at() > threshold) return;
  if (known == Knowledge::kComplete) {
    while (window_.outstanding() > 0) {
      const Psn psn = window_.oldest();
      PsnRecord& record = window_.record(psn);
      if (record.sent_at() > threshold) break;
      ++context.counters.lost_inferred;
      lose(context, psn, record);
    }
    return;
  }
  // Partial: only what this SACK itself shows missing. The PSN behind the edge always is.
  if (const Psn first = sack.cack + 1; window_.contains(first)) {
    PsnRecord& record = window_.record(first);
    if (record.state == PsnState::kOutstanding && record.sent_at() <= threshold) {
      ++context.counters.lost_inferred;
      lose(context, first, record);
    }
  }
  const Psn base = sack.cack + sack.bitmap_offset;
  for (int i = 0; i < 64; ++i) {
    const Psn psn = base + i;
    if ((sack.bitmap >> i & 1) != 0 || !window_.contains(psn)) continue;
    PsnRecord& record = window_.record(psn);
    if (record.state != PsnState::kOutstanding || record.sent_at() > threshold) continue;
    ++context.counters.lost_inferred;
    lose(context, psn, record);
  }
  // For the rest ask, one question at a time.
  if (sack.answers_probe || context.now - last_probe_ >= nscc_.base_rtt()) probe(context, ControlPacket::kAnyPort, ProbeClass::kData);
}

void Requestor::lose(Context& context, Psn psn, PsnRecord& record) {
  const PathSet::Slot slot = record.ev;
  window_.lose(psn, record);
  if (record.counted) {
    record.counted = false;
    nscc_.on_loss(context.now, nominal_size(psn, record));
  }
  record.blamed = true;
  switch (paths_.on_loss(context.now, slot)) {
    case Verdict::kNothing:
      break;
    case Verdict::kEvCondemned:
      ++context.counters.evs_condemned;
      // What cannot be watched could never come back.
      if (!context.prober.watch(context.now, identity_.peer, paths_.ev(slot), false)) {
        paths_.revive(context.now, slot);
      }
      break;
    case Verdict::kPlaneCondemned: {
      ++context.counters.planes_condemned;
      const PortIndex port = paths_.ev(slot).port;
      bool watched = false;
      for (std::uint32_t i = 0; i < 3; ++i) {
        const PathSet::Slot witness = paths_.any_on(port, i);
        watched |= witness != PathSet::kNone &&
                   context.prober.watch(context.now, identity_.peer, paths_.ev(witness), true);
      }
      if (!watched) paths_.revive_plane(context.now, port);
      lose_on_port(context, port);
      break;
    }
  }
}

// Everything under way on a port is gone; no EV is blamed for it, and congestion has nothing to do with it.
void Requestor::lose_on_port(Context& context, PortIndex port) {
  if (window_.outstanding() == 0) return;
  Psn psn = window_.oldest();
  for (std::uint32_t left = window_.outstanding(); left > 0; --left) {
    PsnRecord& record = window_.record(psn);
    const Psn next = left > 1 ? window_.after(record) : psn;
    if (paths_.ev(record.ev).port == port) {
      window_.lose(psn, record);
      if (record.counted) nscc_.on_forget(nominal_size(psn, record));
      record.counted = false;
      ++context.counters.lost_port;
    }
    psn = next;
  }
}

void Requestor::on_port_lost(Context& context, PortIndex port) {
  lose_on_port(context, port);
  if (window_.outstanding() == 0) settle(context);
  trace_window(context);
}

Status Requestor::on_nack(Context& context, const wire::Nack& nack) {
  if (nack.reason == wire::NackReason::kUnexpectedEvent) return Status::kRemoteOperation;
  if (!window_.contains(nack.psn)) {
    ++context.counters.stale;
    return Status::kOk;
  }
  PsnRecord& record = window_.record(nack.psn);
  const bool trimmed = nack.reason == wire::NackReason::kTrimmed;
  const bool current = record.state == PsnState::kOutstanding && timestamp(record.sent_at()) == nack.echo;
  if (trimmed) {
    // The path is congested whichever copy it was.
    const PathSet::Slot slot = current ? record.ev : paths_.find(nack.entropy);
    if (slot != PathSet::kNone) paths_.on_mark(slot);
  }
  if (!current) {
    ++context.counters.stale;
    return Status::kOk;
  }
  const std::int64_t size = nominal_size(nack.psn, record);
  const bool was_counted = record.counted;
  window_.lose(nack.psn, record);
  record.counted = false;
  if (retry_.is_armed()) retry_.restart(context.now);
  tail_count_ = 0;
  if (trimmed || nack.reason == wire::NackReason::kTrimmedLastHop) {
    ++context.counters.lost_trimmed;
    paths_.on_ack(record.ev);  // its header came through: the path lives
    if (was_counted) {
      nscc_.on_trim(context.now, {.size = size, .sent_at = record.sent_at(), .draw = paths_.draw()});
    }
  } else {
    if (was_counted) nscc_.on_forget(size);
    if (nack.reason == wire::NackReason::kPsnOutOfWindow) {
      ++context.counters.nacks_window;
      probe(context, ControlPacket::kAnyPort, ProbeClass::kData);
    } else {
      ++context.counters.nacks_resource;
    }
    resume_at_ = context.now + nscc_.base_rtt();
    tail_at_ = std::min(tail_at_, resume_at_);
  }
  if (window_.outstanding() == 0) settle(context);
  trace_window(context);
  return Status::kOk;
}

Status Requestor::on_transport_ack(Context& context, Psn psn, const wire::TransportAck& ack) {
  if (ack.syndrome != wire::AckSyndrome::kAck) {
    // A NAK about a write that is not under way any more is an old one.
    if (!window_.contains(psn) && (done_count_ >= queue_.size() || psn.since(queue_[done_count_].first) < 0)) {
      ++context.counters.stale;
      return Status::kOk;
    }
    switch (ack.syndrome) {
      case wire::AckSyndrome::kNakRemoteAccess:
        return Status::kRemoteAccess;
      case wire::AckSyndrome::kNakInvalidRequest:
        return Status::kRemoteInvalid;
      default:
        return Status::kRemoteOperation;
    }
  }
  if (window_.next().since(psn) <= 0 || psn.since(acknowledged_) <= 0) {
    ++context.counters.stale;
    return Status::kOk;
  }
  acknowledged_ = psn;
  retry_.reset(context.now);
  retire(context);
  trace_window(context);
  return Status::kOk;
}

// Writes whose last PSN both layers have acknowledged are done.
void Requestor::retire(Context& context) {
  while (done_count_ < sent_count_) {
    const Wqe& wqe = queue_[done_count_];
    if (wqe.last.since(acknowledged_) > 0 || wqe.last.since(window_.cack()) > 0) break;
    if (wqe.request.with_immediate) --wimm_under_way_;
    completion_resend_ = false;
    ++done_count_;
  }
  if (window_.outstanding() == 0) settle(context);
  if (window_.is_idle()) tail_at_ = kNever;
  if (waits_for_transport_ack()) {
    // The SACK has come and its Transport ACK has not: it is on its way, or lost.
    if (tail_count_ < kTailTries) tail_at_ = context.now + nscc_.base_rtt() + params_->nscc.target;
  } else if (window_.is_idle() && done_count_ == queue_.size()) {
    retry_.disarm();
  }
}

// Nothing is on the wire: what is left of inflight is the rounding of the responder's count.
void Requestor::settle(Context& context) {
  const std::int64_t left = nscc_.settle();
  if (window_.is_idle() && (left >= 256 || left <= -256)) ++context.counters.unbalanced;
}

bool Requestor::poll_completion(Completion& out) {
  while (done_count_ > 0) {
    const Wqe wqe = queue_.front();
    queue_.pop();
    --done_count_;
    if (sent_count_ > 0) --sent_count_;
    if (!wqe.request.signalled && wqe.status == Status::kOk) {
      ++silent_done_;
      continue;
    }
    out = {.id = wqe.request.id,
           .qpn = identity_.local_qpn,
           .kind = CompletionKind::kWrite,
           .status = wqe.status,
           .size = wqe.request.size};
    return true;
  }
  return false;
}

void Requestor::fail(Status status) {
  failed_ = true;
  bool blamed = false;
  for (std::size_t i = done_count_; i < queue_.size(); ++i) {
    Wqe& wqe = queue_[i];
    wqe.status = blamed ? Status::kFlushed : status;
    blamed = true;
  }
  done_count_ = static_cast<std::uint32_t>(queue_.size());
  sent_count_ = done_count_;
  wimm_under_way_ = 0;
  window_.clear();
  nscc_.settle();
  retry_.disarm();
  tail_at_ = kNever;
  completion_resend_ = false;
}

// --- time -----------------------------------------------------------------------------------------------------------

void Requestor::arm(Time now) {
  retry_.arm(now);
  if (tail_at_ == kNever && tail_count_ == 0) tail_at_ = now + nscc_.base_rtt() + params_->nscc.target;
}

Time Requestor::deadline() const {
  const Time at = std::min(retry_.deadline(), tail_at_);
  return is_paced() ? std::min(at, nscc_.paced_until()) : at;
}

Status Requestor::on_deadline(Context& context, Duration late_by) {
  const Time now = context.now;
  if (is_paced() && now >= nscc_.paced_until()) paced_out_ = nscc_.paced_until();
  // The world itself stood still: what fell due meanwhile gets one more chance.
  if (late_by > Duration::ms(1) && !rearmed_) {
    rearmed_ = true;
    if (retry_.is_armed()) retry_.restart(now);
    if (tail_at_ != kNever) tail_at_ = now + nscc_.base_rtt() + params_->nscc.target;
    return Status::kOk;
  }
  rearmed_ = false;
  if (now >= tail_at_) {
    tail_at_ = kNever;
    const Time due = last_send_ + nscc_.base_rtt() + params_->nscc.target;
    if (waits_for_transport_ack() && tail_count_ < kTailTries) {
      ++tail_count_;
      completion_resend_ = true;
      tail_at_ = now + nscc_.base_rtt() * 5;
    } else if (window_.outstanding() > 0 && tail_count_ < kTailTries) {
      if (now < due && tail_count_ == 0) {
        tail_at_ = due;  // something was sent meanwhile
      } else {
        ++tail_count_;
        probe(context, ControlPacket::kAnyPort, ProbeClass::kData);
        tail_at_ = now + nscc_.base_rtt() * 5;
      }
    }
  }
  if (!retry_.is_armed() || now < retry_.deadline()) return Status::kOk;
  ++context.counters.timeouts;
  if (!retry_.expire(now)) return Status::kRetryExceeded;
  tail_count_ = 0;
  if (window_.outstanding() > 0) {
    const Psn psn = window_.oldest();
    PsnRecord& record = window_.record(psn);
    if (last_heard_ < record.sent_at()) {
      // Not a word since: the peer is silent. Its paths are not to blame; ask on each plane.
      silent_ = true;
      ++context.counters.silences;
      for (std::uint32_t port = 0; port < world::kPortsMax; ++port) {
        if (paths_.any_on(static_cast<PortIndex>(port), 0) != PathSet::kNone) {
          probe(context, static_cast<std::uint8_t>(port), ProbeClass::kControl);
        }
      }
    } else {
      ++context.counters.lost_timer;
      lose(context, psn, record);
      if (window_.outstanding() == 0) settle(context);
      probe(context, ControlPacket::kAnyPort, ProbeClass::kData);
      trace_window(context);
    }
  } else if (waits_for_transport_ack()) {
    completion_resend_ = true;
  }
  return Status::kOk;
}

// A reliability probe: on the given port, or wherever there is room. Counts as a packet sent now; one of the control class
// overtakes what queues, so it counts as one sent a full queue earlier.
void Requestor::probe(Context& context, std::uint8_t port, ProbeClass probe_class) {
  ControlPacket* packet = context.control.add();
  if (packet == nullptr) return;
  ++context.counters.probes;
  last_probe_ = context.now;
  const std::uint16_t id = next_probe_++;
  const bool data = probe_class == ProbeClass::kData;
  const Duration overtaken = data ? Duration() : nscc_.base_rtt() + params_->nscc.target * 2;
  probe_sent_[id % probe_sent_.size()] = context.now - overtaken;
  packet->peer = identity_.peer;
  packet->qpn = identity_.local_qpn;
  packet->data_class = data;
  packet->port = port;
  if (port != ControlPacket::kAnyPort) {
    packet->fixed_ev = true;
    packet->entropy = paths_.ev(paths_.any_on(port, id)).value;
  }
  write_header(*packet, {.opcode = wire::Opcode::kProbe, .dest_qpn = identity_.peer_qpn},
               wire::Probe{.probe_id = id,
                           .spdcid = static_cast<std::uint16_t>(identity_.local_qpn),
                           .dpdcid = static_cast<std::uint16_t>(identity_.peer_qpn),
                           .sent = timestamp(context.now)});
}

void Requestor::trace_window(Context& context) {
  if (context.trace == nullptr) return;
  TraceRecord record;
  record.at = context.now;
  record.host = context.host;
  record.kind = TraceKind::kWindow;
  record.qpn = identity_.local_qpn;
  record.a = static_cast<std::uint64_t>(nscc_.window());
  record.b = static_cast<std::uint64_t>(nscc_.inflight());
  context.trace->append(record);
}

}  // namespace weft::transport
