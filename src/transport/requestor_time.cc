// Requestor, time: deadlines, and what to do when no answer comes.
#include <algorithm>

#include "base/assert.h"
#include "transport/requestor.h"

namespace weft::transport {

// True when packets are missing and the window is full of packets that may be lost: no new packet
// can be sent that would prove the loss.
bool Requestor::is_stuck() const {
  return window_.received_above_cack() > 0 && window_.outstanding() > 0 && window_.lost() == 0 &&
         !nscc_.allows(burst_packets() * writes_.full_size());
}

// When to probe for missing answers: after a round trip and a full queue in which nothing was sent.
// A stuck sender to a software peer probes as soon as the answer would prove a loss
// (docs/decisions/0032).
Time Requestor::tail_due(const Context& context) {
  const Time due = last_send_ + times(context).answer_time();
  if (!params_->peer->probes_when_stuck || !is_stuck()) return due;
  return std::min(due, window_.record(window_.oldest()).sent_at() + times(context).proof_time());
}

void Requestor::advance_tail_if_stuck(const Context& context) {
  if (!params_->peer->probes_when_stuck || !tail_.is_armed() || tail_.has_fired() || !is_stuck())
    return;
  tail_.no_later_than(std::max(tail_due(context), context.now));
}

// Called after a packet was sent.
void Requestor::arm_timers(const Context& context) {
  const Time now = context.now;
  if (window_.outstanding() == 1) {
    retry_.set_slack(times(context).retry_slack());
    retry_.restart(now);
  } else {
    retry_.arm(now);
  }
  if (!tail_.is_armed() && !tail_.has_fired()) tail_.set(now + times(context).answer_time());
  advance_tail_if_stuck(context);
}

Time Requestor::deadline() const {
  const Time at = std::min(retry_.deadline(), tail_.deadline());
  return is_paced() ? std::min(at, nscc_.paced_until()) : at;
}

Status Requestor::on_deadline(Context& context, Duration late_by) {
  const Time now = context.now;
  WEFT_ASSERT(now >= deadline());
  if (is_paced() && now >= nscc_.paced_until()) pacing_waited_for_ = nscc_.paced_until();
  // The world itself was late: timers that fell due meanwhile get one more chance.
  if (late_by > Duration::ms(1) && !postponed_) {
    postponed_ = true;
    if (retry_.is_armed()) retry_.restart(now);
    if (tail_.is_armed()) tail_.set(now + times(context).answer_time());
    return Status::kOk;
  }
  postponed_ = false;
  if (now >= tail_.deadline()) on_tail(context);
  // After a resource NACK retransmissions wait until resume_at_.
  if (window_.lost() > 0 && resume_at_ > now) tail_.no_later_than(resume_at_);
  if (!retry_.is_armed() || now < retry_.deadline()) return Status::kOk;
  // Other QPs may have learnt meanwhile that the peer's answers take longer.
  retry_.set_slack(times(context).retry_slack());
  if (now < retry_.deadline()) return Status::kOk;
  ++context.counters.timeouts;
  const Time since = retry_.started();
  if (!retry_.expire(now)) return Status::kRetryExceeded;
  tail_.on_progress();
  on_timeout(context, since);
  return Status::kOk;
}

// Nothing was sent for a round trip and a full queue, and an answer is still missing: probes for
// it.
void Requestor::on_tail(Context& context) {
  tail_.disarm();
  if (tail_.is_exhausted()) return;
  const Time due = tail_due(context);
  if (waits_for_transport_ack()) {
    completion_resend_ = true;
  } else if (window_.outstanding() == 0) {
    return;
  } else if (context.now < due && !tail_.has_fired()) {
    tail_.set(due);  // a packet was sent meanwhile
    return;
  } else {
    probe(context, std::nullopt, ProbeClass::kData);
  }
  tail_.on_fired(context.now + nscc_.base_rtt() * 4 + times(context).answer_time() -
                 params_->nscc.target);
}

// There was no progress for a whole retry interval, which began at `since`.
void Requestor::on_timeout(Context& context, Time since) {
  if (waits_for_transport_ack()) completion_resend_ = true;
  if (window_.outstanding() == 0) return;
  const Psn psn = window_.oldest();
  PsnRecord& record = window_.record(psn);
  if (last_heard_ <= std::max(since, record.sent_at())) {
    // Nothing was heard since then: the peer is silent. Its paths are not to blame; probe each
    // plane.
    silent_ = true;
    ++context.counters.silences;
    return probe_planes(context);
  }
  ++context.counters.lost_timer;
  lose(context, psn, record);
  if (window_.outstanding() == 0) settle(context);
  probe(context, std::nullopt, ProbeClass::kData);
  trace_window(context);
}

void Requestor::probe_planes(Context& context) {
  // Where the probe budget does not cover all planes, each plane in turn is the first.
  const std::uint32_t first = params_->peer->probes_per_ms > 0 ? probes_sent_.next_id() : 0;
  for (std::uint32_t i = 0; i < world::kPortsMax; ++i) {
    const std::uint32_t port = (first + i) % world::kPortsMax;
    if (paths_.any_on(static_cast<PortIndex>(port), 0) == PathSet::kNone) continue;
    probe(context, static_cast<PortIndex>(port), ProbeClass::kControl);
  }
}

// Sends a reliability probe on the given port, or on any port with room. It counts as a packet sent
// now. A probe of the control class overtakes queued data, so it counts as sent a full queue
// earlier.
void Requestor::probe(Context& context, std::optional<PortIndex> port, ProbeClass probe_class) {
  // No probe beyond the budget: the timer fires again later.
  if (params_->peer->probes_per_ms > 0 && !context.probes.take(context.now)) return;
  ControlPacket* packet = context.control.add();
  if (packet == nullptr) return;
  ++context.counters.probes;
  const bool data = probe_class == ProbeClass::kData;
  const std::uint16_t id = probes_sent_.add(
      context.now, context.now - (data ? Duration() : times(context).queue_time()));
  packet->peer = qp_.peer;
  packet->qpn = qp_.local_qpn;
  packet->data_class = data;
  if (port) {
    packet->port = PortChoice::only(*port);
    packet->fixed_ev = true;
    packet->entropy = paths_.ev(paths_.any_on(*port, id)).value;
  } else if (!tail_.has_fired()) {
    packet->port = PortChoice::prefer_heard();  // the next probes take the planes in turn
  }
  write_header(*packet, {.opcode = wire::Opcode::kProbe, .dest_qpn = qp_.peer_qpn},
               wire::Probe{.probe_id = id,
                           .spdcid = static_cast<std::uint16_t>(qp_.local_qpn),
                           .dpdcid = static_cast<std::uint16_t>(qp_.peer_qpn),
                           .sent = timestamp(context.now)});
}

void Requestor::trace_window(Context& context) {
  if (context.trace == nullptr) return;
  TraceRecord record;
  record.at = context.now;
  record.host = context.host;
  record.kind = TraceKind::kWindow;
  record.qpn = qp_.local_qpn;
  record.a = static_cast<std::uint64_t>(nscc_.window());
  record.b = static_cast<std::uint64_t>(nscc_.inflight());
  context.trace->append(record);
}

}  // namespace weft::transport
