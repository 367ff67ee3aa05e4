// Requestor, answers: records what the responder has received, and which writes are done.
#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "transport/requestor.h"

namespace weft::transport {

void Requestor::on_heard(Context& context) {
  last_heard_ = context.now;
  silent_ = false;
  if (!retry_.is_backed_off()) return;
  // The peer is back. Instead of waiting until the retry interval ends, the oldest missing packet
  // is retransmitted, and a probe asks what else is missing. Silence counts neither against an EV
  // nor as congestion.
  retry_.on_peer_alive(context.now);
  if (window_.outstanding() == 0) return;
  const Psn psn = window_.oldest();
  PsnRecord& record = window_.record(psn);
  // A software peer that is late may still answer this packet.
  if (context.now - record.sent_at() < times(context).retry_slack()) return;
  forget_loss(psn, record);
  ++context.counters.lost_timer;
  probe(context, std::nullopt, ProbeClass::kData);
  trace_window(context);
}

void Requestor::acknowledge(Context& context, Psn psn) {
  PsnRecord& record = window_.record(psn);
  if (record.state == PsnState::kReceived) return;
  if (record.state == PsnState::kLost) {
    // The packet was declared lost and not retransmitted, and arrived after all.
    on_spurious_loss(context);
    nscc_.on_lost_packet_arrived(nominal_size(psn, record));
    // The EV's probes go on: another QP may have condemned the same EV.
    if (record.blamed && paths_.on_lost_packet_arrived(context.now, record.ev)) {
      ++context.counters.evs_withdrawn;
      ++context.counters.path_changes;
    }
  } else {
    // The answer came too soon for the second copy: the first copy had arrived.
    if (record.copies > 1 && context.now - record.sent_at() < nscc_.answer_time_min())
      on_spurious_loss(context);
    paths_.on_ack(record.ev);
  }
  if (record.copies == 1)
    oldest_newly_acked_sent_at_ = std::min(oldest_newly_acked_sent_at_, record.sent_at());
  window_.receive(psn, record);
}

bool Requestor::acknowledge_cumulative(Context& context, Psn cack) {
  WEFT_ASSERT(window_.next().since(cack) > 0);  // on_sack rejects any other cack
  if (cack.since(window_.cack()) <= 0) return false;
  for (Psn psn = window_.cack() + 1; psn.since(cack) <= 0; psn = psn + 1) acknowledge(context, psn);
  window_.advance(cack);
  return true;
}

bool Requestor::acknowledge_bitmap(Context& context, const wire::Sack& sack) {
  const Psn base = sack.cack + sack.bitmap_offset;
  const std::uint32_t before = window_.received_above_cack();
  for (std::uint64_t bits = sack.bitmap; bits != 0; bits &= bits - 1) {
    const Psn psn = base + std::countr_zero(bits);
    if (window_.contains(psn)) acknowledge(context, psn);
  }
  return window_.received_above_cack() != before;
}

// Records all packets that the SACK reports as received. Timers restart if the SACK acknowledges
// something new.
void Requestor::acknowledge_all(Context& context, const wire::Sack& sack) {
  oldest_newly_acked_sent_at_ = kNever;
  bool progress = acknowledge_cumulative(context, sack.cack);
  if (progress) retry_.on_progress(context.now);
  progress = acknowledge_bitmap(context, sack) || progress;
  if (progress) {
    if (retry_.is_armed()) retry_.restart(context.now);
    tail_.on_progress();
  }
}

// Finds which copy of which packet triggered this SACK, when that copy was sent, and on which EV.
Requestor::Trigger Requestor::trigger_of(const Context& context, const wire::Bth& bth,
                                         const wire::Sack& sack) {
  Trigger trigger;
  if (sack.answers_probe) {
    trigger.sent_at = probes_sent_.sent_at(sack.probe_id);
    trigger.of_probe = trigger.sent_at != kNever;
  } else if (const Psn psn = sack.cack + sack.trigger_offset; window_.contains(psn)) {
    const PsnRecord& record = window_.record(psn);
    if (timestamp(record.sent_at()) == sack.echo) {
      trigger.sent_at = record.sent_at();
      trigger.rtt_valid = record.copies == 1 || bth.rtx;
      trigger.rtt = std::max(context.received_at - record.sent_at(), Duration());
      trigger.full_size = record.full;
      trigger.slot = record.ev;
    } else if (params_->peer->measures_lateness && record.copies > 1 &&
               record.state == PsnState::kOutstanding) {
      // The SACK was triggered by a copy before the newest. That copy was declared lost and arrived
      // after all: only such copies show how late packets are.
      trigger.earlier_copy_age = age_of(context.received_at, sack.echo);
    }
  }
  if (sack.mark != wire::PathMark::kNone && trigger.slot == PathSet::kNone) {
    trigger.slot = paths_.find_echo(sack.entropy);
  }
  return trigger;
}

void Requestor::learn_delays(Context& context, const Trigger& trigger) {
  const Duration base_rtt = nscc_.base_rtt();
  if (trigger.rtt_valid) loss_.on_delay(std::max(trigger.rtt - base_rtt, Duration()));
  if (trigger.earlier_copy_age)
    loss_.on_delay(std::max(*trigger.earlier_copy_age - base_rtt, Duration()));
  if (!params_->peer->measures_lateness) return;
  learn_answer_time(context, trigger);
  learn_order(context, trigger);
}

// Learns how long the peer's answers take, for the timers.
void Requestor::learn_answer_time(Context& context, const Trigger& trigger) {
  DelaySpread& answers = context.peers[qp_.peer].answers;
  if (trigger.of_probe) {
    // A probe may overtake data, and its short time then says nothing about other answers: only a
    // longer time counts.
    const Duration took = context.received_at - trigger.sent_at - times(context).queue_time();
    if (took <= answers.value()) return;
    answers.on_delay(took);
  } else if (trigger.rtt_valid) {
    answers.on_delay(trigger.rtt);
  } else if (trigger.earlier_copy_age) {
    answers.on_delay(*trigger.earlier_copy_age);
  } else {
    return;
  }
  retry_.set_slack(times(context).retry_slack());
}

// Learns whether the packets that this SACK is the first to acknowledge were overtaken by packets
// acknowledged before.
void Requestor::learn_order(const Context& context, const Trigger& trigger) {
  const auto overtaken_by = [this](Time sent_at) {
    return std::max(newest_trigger_sent_at_ - sent_at, Duration());
  };
  if (trigger.earlier_copy_age)
    loss_.on_order(overtaken_by(context.received_at - *trigger.earlier_copy_age));
  if (oldest_newly_acked_sent_at_ != kNever)
    loss_.on_order(overtaken_by(oldest_newly_acked_sent_at_));
  if (trigger.sent_at != kNever)
    newest_trigger_sent_at_ = std::max(newest_trigger_sent_at_, trigger.sent_at);
}

bool Requestor::on_sack(Context& context, const wire::Bth& bth, const wire::Sack& sack) {
  // A SACK that acknowledges packets that were never sent is ignored entirely.
  if (window_.next().since(sack.cack) <= 0) return false;
  const std::uint32_t newly_256 = (sack.rcvd_bytes_256 - rcvd_bytes_256_) & 0xff'ffff;
  const bool newest = newly_256 < 0x80'0000;
  const Trigger trigger = trigger_of(context, bth, sack);

  acknowledge_all(context, sack);
  if (trigger.slot != PathSet::kNone) apply_path_mark(context, trigger.slot, sack.mark);
  if (newest) rcvd_bytes_256_ = sack.rcvd_bytes_256;
  nscc_.on_sack(context.now, {.newly = newest ? static_cast<std::int64_t>(newly_256) * 256 : 0,
                              .marked = sack.mark == wire::PathMark::kSkipOnce,
                              .rtt_valid = trigger.rtt_valid,
                              .full_size = trigger.full_size,
                              .rtt = trigger.rtt,
                              .penalty = sack.cwnd_penalty,
                              .restore = sack.restore_cwnd});
  learn_delays(context, trigger);
  apply_receive_limit(sack);
  if (trigger.sent_at != kNever) {
    infer_losses(context, sack, trigger.sent_at,
                 knowledge(newest, sack.ooo_count, window_.received_above_cack()));
  }
  advance_tail_if_stuck(context);
  retire(context);
  trace_window(context);
  return true;
}

void Requestor::apply_path_mark(Context& context, PathSet::Slot slot, wire::PathMark mark) {
  switch (mark) {
    case wire::PathMark::kNone:
      return paths_.on_clean_echo(slot);
    case wire::PathMark::kSkipOnce:
      ++context.counters.marks;
      return paths_.on_mark(slot);
    case wire::PathMark::kAlwaysSkip:
      if (context.prober.watch(context.now, qp_.peer, paths_.ev(slot), false) &&
          paths_.condemn(context.now, slot)) {
        ++context.counters.evs_condemned[paths_.ev(slot).port];
        ++context.counters.path_changes;
      }
  }
}

// Applies the peer's receive limit. Losses at a peer whose buffer overflows blame no EV.
void Requestor::apply_receive_limit(const wire::Sack& sack) {
  const std::uint32_t unit = params_->budget_unit_bytes;
  if (unit == 0) return extend_window(sack.mpr);
  extend_window(0);
  if (sack.mpr != 0) nscc_.set_limit(std::int64_t{sack.mpr} * unit);
  peer_overflows_ = (sack.cc_flags & wire::kCcFlagOverflow) != 0;
}

// Moves the first PSN that may not be sent: the peer's window counts from cack. A dynamic window's
// end never moves back, and the ring bounds it; mpr 0 means no change.
void Requestor::extend_window(std::uint8_t mpr) {
  if (params_->config.dynamic_mpr && mpr != 0) peer_mpr_ = mpr;
  const std::uint32_t span =
      std::min((peer_mpr_ != 0 ? peer_mpr_ : params_->config.mpr) * 128, window_.window_max());
  const Psn edge = window_.cack() + 1 + static_cast<std::int32_t>(span);
  if (edge.since(window_end_) > 0) window_end_ = edge;
  WEFT_ASSERT(window_end_.since(window_.cack()) > 0);
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
    // The path is congested, whichever copy was trimmed.
    const PathSet::Slot slot = current ? record.ev : paths_.find_echo(nack.entropy);
    if (slot != PathSet::kNone) paths_.on_mark(slot);
  }
  if (!current) {
    ++context.counters.stale;
    return Status::kOk;
  }
  const std::int64_t size = nominal_size(nack.psn, record);
  window_.lose(nack.psn, record);
  if (retry_.is_armed()) retry_.restart(context.now);
  tail_.on_progress();
  if (trimmed || nack.reason == wire::NackReason::kTrimmedLastHop) {
    ++context.counters.lost_trimmed;
    paths_.on_ack(record.ev);  // the packet's header arrived: the path works
    nscc_.on_trim(
        context.now,
        {.size = size, .sent_at = record.sent_at(), .draw = paths_.draw(), .last_hop = !trimmed});
  } else {
    nscc_.on_loss_without_congestion(size);
    if (nack.reason == wire::NackReason::kPsnOutOfWindow) {
      ++context.counters.nacks_window;
      probe(context, std::nullopt, ProbeClass::kData);
    } else {
      ++context.counters.nacks_resource;
    }
    resume_at_ = context.now + nscc_.base_rtt();
    tail_.no_later_than(resume_at_);
  }
  if (window_.outstanding() == 0) settle(context);
  trace_window(context);
  return Status::kOk;
}

Status Requestor::on_transport_ack(Context& context, Psn psn, const wire::TransportAck& ack) {
  if (ack.syndrome != wire::AckSyndrome::kAck) {
    // A NAK about a write that is not in progress is an old one.
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
  retry_.on_progress(context.now);
  retire(context);
  trace_window(context);
  return Status::kOk;
}

// Writes are done when both a SACK and a Transport ACK have covered their last PSN.
void Requestor::retire(Context& context) {
  while (writes_.has_under_way()) {
    const Psn last = writes_.oldest().last;
    if (last.since(acknowledged_) > 0 || last.since(window_.cack()) > 0) break;
    writes_.retire();
    completion_resend_ = false;
  }
  if (window_.outstanding() == 0) settle(context);
  if (window_.is_idle()) tail_.disarm();
  if (waits_for_transport_ack()) {
    // The SACK has come and its Transport ACK has not: the Transport ACK is in flight, or lost.
    if (!tail_.is_exhausted()) tail_.set(context.now + times(context).answer_time());
  } else if (window_.is_idle() && !writes_.has_incomplete()) {
    retry_.disarm();
  }
}

// Nothing is outstanding: what is left of inflight is the rounding of the responder's count, or a
// wrong count. If packets wait for retransmission and inflight is zero or below, some of them have
// arrived after all and will be acknowledged: nothing is settled yet.
void Requestor::settle(Context& context) {
  WEFT_ASSERT(window_.outstanding() == 0);
  // Each PSN was received once, so our own sum equals that of all PSNs, whatever was lost and
  // retransmitted.
  WEFT_ASSERT(!window_.is_idle() || nscc_.accounted() == opened_bytes_);
  if (!window_.is_idle() && nscc_.inflight() <= 0) return;
  const std::int64_t left = nscc_.settle();
  if (left >= 256 || left <= -256) ++context.counters.unbalanced;
}

}  // namespace weft::transport
