// Requestor, hearing: what did the responder get, what is lost, what is done?
#include <algorithm>
#include <bit>

#include "transport/requestor.h"

namespace weft::transport {

void Requestor::on_heard(Context& context) {
  last_heard_ = context.now;
  silent_ = false;
  if (!retry_.is_backed_off()) return;
  // The peer is back: instead of waiting out the interval the oldest gap goes out again, and a
  // probe asks what else it lacks. Silence blames no EV and no congestion.
  retry_.restart_first_interval(context.now);
  if (window_.outstanding() == 0) return;
  const Psn psn = window_.oldest();
  PsnRecord& record = window_.record(psn);
  // What a software peer takes so long for may still be before it.
  if (context.now - record.sent_at() < slack(context)) return;
  window_.lose(psn, record);
  if (record.counted) nscc_.on_forget(nominal_size(psn, record));
  record.counted = false;
  ++context.counters.lost_timer;
  probe(context, std::nullopt, ProbeClass::kData);
  trace_window(context);
}

// What was declared lost had arrived: more time is to be given. A software end loses a run of
// packets by one mistake, and learns from it once; links and peers stand still for milliseconds
// there.
void Requestor::note_spurious(Context& context) {
  ++context.counters.spurious;
  const Duration base = nscc_.base_rtt();
  if (!params_->nscc.software) return loss_.on_spurious({.more = base / 4, .most = base * 2});
  if (context.now - spurious_at_ < base) return;
  spurious_at_ = context.now;
  loss_.on_spurious(
      {.more = loss_.reorder_window(base) / 8, .most = std::max(kLateMax / 2, base * 2)});
}

void Requestor::acknowledge(Context& context, Psn psn) {
  PsnRecord& record = window_.record(psn);
  if (record.state == PsnState::kReceived) return;
  if (record.state == PsnState::kLost) {
    // Declared lost, not sent again, and there after all.
    note_spurious(context);
    nscc_.on_unlost(nominal_size(psn, record));
    // Its probes go on: another QP may have condemned the same EV.
    if (record.blamed && paths_.on_unlost(context.now, record.ev)) {
      ++context.counters.evs_withdrawn;
    }
  } else {
    // Too soon for the second copy: the first had arrived.
    if (record.copies > 1 && context.now - record.sent_at() < nscc_.soonest())
      note_spurious(context);
    paths_.on_ack(record.ev);
  }
  if (record.copies == 1) oldest_news_ = std::min(oldest_news_, record.sent_at());
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

// Which copy of which packet triggered this SACK, when was it sent, and on which EV?
Requestor::Trigger Requestor::trigger_of(const Context& context, const wire::Bth& bth,
                                         const wire::Sack& sack) {
  Trigger trigger;
  if (sack.answers_probe) {
    const auto age = static_cast<std::uint16_t>(next_probe_ - sack.probe_id);
    if (age >= 1 && age <= probe_sent_.size()) {
      trigger.sent_at = probe_sent_[sack.probe_id % probe_sent_.size()];
      trigger.of_probe = trigger.sent_at != kNever;
    }
  } else if (const Psn psn = sack.cack + sack.trigger_offset; window_.contains(psn)) {
    const PsnRecord& record = window_.record(psn);
    if (timestamp(record.sent_at()) == sack.echo) {
      trigger.sent_at = record.sent_at();
      trigger.rtt_valid = record.copies == 1 || bth.rtx;
      trigger.rtt = std::max(context.received_at - record.sent_at(), Duration());
      trigger.full_size = record.full;
      trigger.slot = record.ev;
    } else if (params_->nscc.software && record.copies > 1 &&
               record.state == PsnState::kOutstanding) {
      // A copy before the newest: it was taken for lost, and is there after all. How late things
      // are is seen by these alone.
      trigger.older_age = age_of(context.received_at, sack.echo);
    }
  }
  if (sack.mark != wire::PathMark::kNone && trigger.slot == PathSet::kNone) {
    trigger.slot = paths_.find_echo(sack.entropy);
  }
  return trigger;
}

// How long a software peer's answers take; timers go by it.
void Requestor::hear_delay(Context& context, const Trigger& trigger) {
  DelaySpread& answers = context.peers[qp_.peer].answers;
  if (trigger.of_probe) {
    // It may be one that overtook: then it says nothing of how long others take.
    const Duration took = context.received_at - trigger.sent_at - overtaken();
    if (took <= answers.value()) return;
    answers.on_delay(took);
  } else if (trigger.rtt_valid) {
    answers.on_delay(trigger.rtt);
  } else if (trigger.older_age) {
    answers.on_delay(*trigger.older_age);
  } else {
    return;
  }
  retry_.set_slack(slack(context));
}

// Whether what came now was overtaken by something that was heard of before.
void Requestor::hear_order(const Context& context, const Trigger& trigger) {
  if (trigger.older_age) {
    const Time sent_at = context.received_at - *trigger.older_age;
    loss_.on_order(std::max(newest_heard_ - sent_at, Duration()));
  }
  if (oldest_news_ != kNever) loss_.on_order(std::max(newest_heard_ - oldest_news_, Duration()));
  if (trigger.sent_at != kNever) newest_heard_ = std::max(newest_heard_, trigger.sent_at);
}

bool Requestor::on_sack(Context& context, const wire::Bth& bth, const wire::Sack& sack) {
  // A peer that acknowledges what was never sent is not believed at all.
  if (window_.next().since(sack.cack) <= 0) return false;
  const std::uint32_t newly_256 = (sack.rcvd_bytes_256 - rcvd_bytes_256_) & 0xff'ffff;
  const bool newest = newly_256 < 0x80'0000;
  const Trigger trigger = trigger_of(context, bth, sack);

  oldest_news_ = kNever;
  bool progress = advance(context, sack.cack);
  if (progress) retry_.reset(context.now);
  progress = take_bits(context, sack) || progress;
  if (progress) {
    if (retry_.is_armed()) retry_.restart(context.now);
    tail_count_ = 0;
  }
  if (trigger.slot != PathSet::kNone) on_path_mark(context, trigger.slot, sack.mark);

  if (newest) rcvd_bytes_256_ = sack.rcvd_bytes_256;
  nscc_.on_sack(context.now, {.newly = newest ? static_cast<std::int64_t>(newly_256) * 256 : 0,
                              .marked = sack.mark == wire::PathMark::kSkipOnce,
                              .rtt_valid = trigger.rtt_valid,
                              .full_size = trigger.full_size,
                              .rtt = trigger.rtt,
                              .penalty = sack.cwnd_penalty,
                              .restore = sack.restore_cwnd});
  if (trigger.rtt_valid) loss_.on_delay(std::max(trigger.rtt - nscc_.base_rtt(), Duration()));
  if (trigger.older_age)
    loss_.on_delay(std::max(*trigger.older_age - nscc_.base_rtt(), Duration()));
  if (params_->nscc.software) {
    hear_delay(context, trigger);
    hear_order(context, trigger);
  }
  hear_limit(sack);
  if (trigger.sent_at != kNever) {
    infer_losses(context, sack, trigger.sent_at,
                 knowledge(newest, sack.ooo_count, window_.received_above_cack()));
  }
  hurry_tail(context);
  retire(context);
  trace_window(context);
  return true;
}

void Requestor::on_path_mark(Context& context, PathSet::Slot slot, wire::PathMark mark) {
  switch (mark) {
    case wire::PathMark::kNone:
      return paths_.on_clean_echo(slot);
    case wire::PathMark::kSkipOnce:
      ++context.counters.marks;
      return paths_.on_mark(slot);
    case wire::PathMark::kAlwaysSkip:
      if (context.prober.watch(context.now, qp_.peer, paths_.ev(slot), false) &&
          paths_.condemn(context.now, slot)) {
        ++context.counters.evs_condemned;
      }
  }
}

// What the peer says of its room. SACKs of a peer that loses packets for want of it blame no EV.
void Requestor::hear_limit(const wire::Sack& sack) {
  const std::uint32_t unit = params_->config.budget_unit_bytes;
  if (unit == 0) return move_edge(sack.mpr);
  move_edge(0);
  if (sack.mpr != 0) nscc_.set_limit(std::int64_t{sack.mpr} * unit);
  peer_overflows_ = (sack.cc_flags & wire::kCcFlagOverflow) != 0;
}

// The first PSN that may not be sent: the peer's window from cack on. A dynamic one never moves
// left, and the ring bounds it; 0 means no change.
void Requestor::move_edge(std::uint8_t mpr) {
  if (params_->config.dynamic_mpr && mpr != 0) peer_mpr_ = mpr;
  const std::uint32_t span =
      std::min((peer_mpr_ != 0 ? peer_mpr_ : params_->config.mpr) * 128, window_.window_max());
  const Psn edge = window_.cack() + 1 + static_cast<std::int32_t>(span);
  if (edge.since(edge_) > 0) edge_ = edge;
}

void Requestor::infer_losses(Context& context, const wire::Sack& sack, Time trigger_sent,
                             Knowledge known) {
  const Time threshold = trigger_sent - proof_time();
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
  // For the rest ask, one question at a time; a software peer also gets time to answer.
  const Duration since = context.now - last_probe_;
  const bool may_ask = params_->nscc.software ? since >= answer_time(context)
                                              : sack.answers_probe || since >= nscc_.base_rtt();
  if (may_ask) probe(context, std::nullopt, ProbeClass::kData);
}

void Requestor::lose(Context& context, Psn psn, PsnRecord& record) {
  const PathSet::Slot slot = record.ev;
  window_.lose(psn, record);
  if (record.counted) {
    record.counted = false;
    nscc_.on_loss(context.now, nominal_size(psn, record));
  }
  if (peer_overflows_) {
    ++context.counters.lost_overflow;
    return;
  }
  record.blamed = true;
  switch (paths_.on_loss(context.now, slot, loss_.spread())) {
    case Verdict::kNothing:
      break;
    case Verdict::kEvCondemned:
      ++context.counters.evs_condemned;
      // What cannot be watched could never come back.
      if (!context.prober.watch(context.now, qp_.peer, paths_.ev(slot), false)) {
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
                   context.prober.watch(context.now, qp_.peer, paths_.ev(witness), true);
      }
      if (!watched) paths_.revive_plane(context.now, port);
      lose_on_port(context, port);
      break;
    }
  }
}

// Everything under way on a port is gone; no EV is blamed for it, and congestion has nothing to do
// with it.
void Requestor::lose_on_port(Context& context, PortIndex port) {
  nscc_.on_plane_lost();
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

void Requestor::on_port_back(Time now, PortIndex port) {
  paths_.revive_plane(now, port);
  loss_.forget_order();
}

void Requestor::on_port_lost(Context& context, PortIndex port) {
  lose_on_port(context, port);
  if (window_.outstanding() == 0) settle(context);
  trace_window(context);
}

Status Requestor::on_nack(Context& context, const wire::Nack& nack) {
  if (nack.reason == wire::NackReason::kUnexpectedEvent && is_under_way(nack.psn)) {
    refused_ = nack.psn;
    return Status::kRemoteOperation;
  }
  if (!window_.contains(nack.psn)) {
    ++context.counters.stale;
    return Status::kOk;
  }
  PsnRecord& record = window_.record(nack.psn);
  const bool trimmed = nack.reason == wire::NackReason::kTrimmed;
  const bool current =
      record.state == PsnState::kOutstanding && timestamp(record.sent_at()) == nack.echo;
  if (trimmed) {
    // The path is congested whichever copy it was.
    const PathSet::Slot slot = current ? record.ev : paths_.find_echo(nack.entropy);
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
      nscc_.on_trim(
          context.now,
          {.size = size, .sent_at = record.sent_at(), .draw = paths_.draw(), .last_hop = !trimmed});
    }
  } else {
    if (was_counted) nscc_.on_forget(size);
    if (nack.reason == wire::NackReason::kPsnOutOfWindow) {
      ++context.counters.nacks_window;
      probe(context, std::nullopt, ProbeClass::kData);
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
    if (!is_under_way(psn)) {
      ++context.counters.stale;
      return Status::kOk;
    }
    refused_ = psn;
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
    if (tail_count_ < kTailTries) tail_at_ = context.now + answer_time(context);
  } else if (window_.is_idle() && done_count_ == queue_.size()) {
    retry_.disarm();
  }
}

// Nothing is on the wire: what is left of inflight is the rounding of the responder's count. Below
// zero while packets wait to be sent again, some of them have arrived after all, and will be
// acknowledged.
void Requestor::settle(Context& context) {
  if (!window_.is_idle() && nscc_.inflight() <= 0) return;
  const std::int64_t left = nscc_.settle();
  if (left >= 256 || left <= -256) ++context.counters.unbalanced;
}

}  // namespace weft::transport
