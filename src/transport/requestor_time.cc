// Requestor, time: when must it be called, and what is done when nothing comes?
#include <algorithm>

#include "transport/requestor.h"

namespace weft::transport {

// What a software peer's answers take longer than the network does, as this QP or another saw it. A
// pause of seconds is not waited for again.
Duration Requestor::lateness(const Context& context) const {
  if (!params_->nscc.software) return Duration();
  const Duration answers = context.peers[qp_.peer].answers.value() - nscc_.base_rtt();
  return std::min(std::max(loss_.spread(), answers), RetryTimer::kSlackMax / 2);
}

// What the retry timer waits beyond its interval, which is made for networks of microseconds. As
// long as a software peer has answered nothing there may be any queue before it, of what others
// send to it above all.
Duration Requestor::slack(const Context& context) const {
  if (!params_->nscc.software) return Duration();
  if (!context.peers[qp_.peer].answers.is_known()) return kSlackUnknown;
  return std::min((nscc_.base_rtt() + lateness(context)) * 2, RetryTimer::kSlackMax);
}

// A round trip and a full queue.
Duration Requestor::answer_time(const Context& context) const {
  return nscc_.base_rtt() + params_->nscc.target + lateness(context);
}

// What was sent that much later and has arrived proves a packet lost that has not. A software peer
// looks at one port after the other: what waits at one is not lost.
Duration Requestor::proof_time() const {
  const Duration turn = params_->nscc.software ? nscc_.base_rtt() * 2 : Duration();
  return loss_.reorder_window(nscc_.base_rtt()) + turn;
}

// Something is missing, and the window is full of what may be gone: nothing is sent that would
// prove it.
bool Requestor::is_stuck() const {
  return window_.received_above_cack() > 0 && window_.outstanding() > 0 && window_.lost() == 0 &&
         !nscc_.allows(run_packets() * full_size());
}

// When to ask for answers that are missing: after a round trip and a full queue in which nothing
// was sent. Where a software end is stuck, as soon as the answer is a proof (docs/decisions/0032).
Time Requestor::tail_due(const Context& context) {
  const Time due = last_send_ + answer_time(context);
  if (!params_->nscc.software || !is_stuck()) return due;
  return std::min(due, window_.record(window_.oldest()).sent_at() + proof_time());
}

void Requestor::hurry_tail(const Context& context) {
  if (!params_->nscc.software || tail_at_ == kNever || tail_count_ > 0 || !is_stuck()) return;
  tail_at_ = std::min(tail_at_, std::max(tail_due(context), context.now));
}

// A packet was sent.
void Requestor::arm(const Context& context) {
  const Time now = context.now;
  if (window_.outstanding() == 1) {
    retry_.set_slack(slack(context));
    retry_.restart(now);
  } else {
    retry_.arm(now);
  }
  if (tail_at_ == kNever && tail_count_ == 0) tail_at_ = now + answer_time(context);
  hurry_tail(context);
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
    if (tail_at_ != kNever) tail_at_ = now + answer_time(context);
    return Status::kOk;
  }
  rearmed_ = false;
  if (now >= tail_at_) on_tail(context);
  // A resource NACK put retransmissions off: they go when its time is over.
  if (window_.lost() > 0 && resume_at_ > now) tail_at_ = std::min(tail_at_, resume_at_);
  if (!retry_.is_armed() || now < retry_.deadline()) return Status::kOk;
  // Others may have seen meanwhile that answers take longer now.
  retry_.set_slack(slack(context));
  if (now < retry_.deadline()) return Status::kOk;
  ++context.counters.timeouts;
  const Time since = retry_.started();
  if (!retry_.expire(now)) return Status::kRetryExceeded;
  tail_count_ = 0;
  on_timeout(context, since);
  return Status::kOk;
}

// Nothing was sent for a round trip and a full queue, and an answer is still missing: ask for it.
void Requestor::on_tail(Context& context) {
  tail_at_ = kNever;
  if (tail_count_ >= kTailTries) return;
  const Time due = tail_due(context);
  if (waits_for_transport_ack()) {
    completion_resend_ = true;
  } else if (window_.outstanding() == 0) {
    return;
  } else if (context.now < due && tail_count_ == 0) {
    tail_at_ = due;  // something was sent meanwhile
    return;
  } else {
    probe(context, std::nullopt, ProbeClass::kData);
  }
  ++tail_count_;
  tail_at_ = context.now + nscc_.base_rtt() * 4 + answer_time(context) - params_->nscc.target;
}

// No progress for a whole retry interval, which began at `since`.
void Requestor::on_timeout(Context& context, Time since) {
  if (waits_for_transport_ack()) completion_resend_ = true;
  if (window_.outstanding() == 0) return;
  const Psn psn = window_.oldest();
  PsnRecord& record = window_.record(psn);
  if (last_heard_ <= std::max(since, record.sent_at())) {
    // Not a word since: the peer is silent. Its paths are not to blame; ask on each plane.
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
  // Where the budget does not do for all of them, each has its turn to be first.
  const std::uint32_t first = context.probes.is_bounded() ? next_probe_ : 0;
  for (std::uint32_t i = 0; i < world::kPortsMax; ++i) {
    const std::uint32_t port = (first + i) % world::kPortsMax;
    if (paths_.any_on(static_cast<PortIndex>(port), 0) == PathSet::kNone) continue;
    probe(context, static_cast<PortIndex>(port), ProbeClass::kControl);
  }
}

// A reliability probe: on the given port, or wherever there is room. Counts as a packet sent now;
// one of the control class overtakes what queues, so it counts as one sent a full queue earlier.
void Requestor::probe(Context& context, std::optional<PortIndex> port, ProbeClass probe_class) {
  if (!context.probes.take(context.now)) return;  // asked again when the timer fires again
  ControlPacket* packet = context.control.add();
  if (packet == nullptr) return;
  ++context.counters.probes;
  last_probe_ = context.now;
  const std::uint16_t id = next_probe_++;
  const bool data = probe_class == ProbeClass::kData;
  probe_sent_[id % probe_sent_.size()] = context.now - (data ? Duration() : overtaken());
  packet->peer = qp_.peer;
  packet->qpn = qp_.local_qpn;
  packet->data_class = data;
  if (port) {
    packet->port = PortChoice::only(*port);
    packet->fixed_ev = true;
    packet->entropy = paths_.ev(paths_.any_on(*port, id)).value;
  } else if (tail_count_ == 0) {
    packet->port = PortChoice::prefer_heard();  // later ones in turn
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
