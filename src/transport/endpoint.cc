// Endpoint, the application's side: what is posted, what came of it, and what falls due.
#include "transport/endpoint.h"

#include <algorithm>

#include "base/assert.h"

namespace weft::transport {

// --- work --------------------------------------------------------------------------------------

// The messages are short enough for a string that takes no memory: being refused is an everyday
// event here.
Result<void> Endpoint::post_write(Time now, Qpn qpn, const WriteRequest& request) {
  Qp* qp = find_qp(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (!qp->may_send()) return Error{ErrorKind::kWrongState, "QP not in RTS"};
  if (!has_room(*qp)) return Error{ErrorKind::kExhausted, "queue is full"};
  if (request.size > write_max(*qp)) return Error{ErrorKind::kInvalid, "write too long"};
  ++completions_reserved_;
  qp->requestor.post(now, request);
  on_posted(*qp);
  return {};
}

std::size_t Endpoint::post_writes(Time now, Qpn qpn,
                                  std::span<const WriteRequest* const> requests) {
  Qp* const qp = find_qp(qpn);
  if (qp == nullptr || !qp->may_send()) return 0;
  std::size_t taken = 0;
  for (; taken < requests.size(); ++taken) {
    const WriteRequest& request = *requests[taken];
    if (!has_room(*qp) || request.size > write_max(*qp)) break;
    ++completions_reserved_;
    qp->requestor.post(now, request);
  }
  if (taken > 0) on_posted(*qp);
  return taken;
}

void Endpoint::on_posted(Qp& qp) {
  deadlines_.at_latest(qp_index(qp), qp.requestor.deadline());
  mark_ready(qp);
}

Result<void> Endpoint::post_receive(Time, Qpn qpn, std::uint64_t id) {
  Qp* qp = find_qp(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (qp->state == QpState::kError) return Error{ErrorKind::kWrongState, "QP is in ERR"};
  if (qp->receives.full() || completions_reserved_ >= config_.completion_queue_max) {
    return Error{ErrorKind::kExhausted, "queue is full"};
  }
  ++completions_reserved_;
  qp->receives.push(id);
  return {};
}

std::size_t Endpoint::poll_completions(std::span<Completion> out) {
  std::size_t count = 0;
  while (count < out.size() && !completions_.empty()) {
    out[count++] = completions_.front();
    completions_.pop();
    --completions_reserved_;
  }
  return count;
}

void Endpoint::collect(Qp& qp) {
  Completion completion;
  while (qp.requestor.poll_completion(completion)) completions_.push(completion);
  completions_reserved_ -= qp.requestor.take_silent_done();
}

bool Endpoint::poll_failure(QpFailure& out) {
  if (failures_.empty()) return false;
  out = failures_.front();
  failures_.pop();
  return true;
}

void Endpoint::fail(Time now, Qp& qp, Status status) {
  qp.state = QpState::kError;
  if (config_.tell_failures && !failures_.full()) failures_.push({.qpn = qp.qpn, .status = status});
  qp.requestor.fail(status);
  collect(qp);
  while (!qp.receives.empty()) {
    completions_.push({.id = qp.receives.front(),
                       .qpn = qp.qpn,
                       .kind = CompletionKind::kReceiveImmediate,
                       .status = Status::kFlushed});
    qp.receives.pop();
  }
  deadlines_.remove(qp_index(qp));
  if (trace_ != nullptr) trace_qp(now, TraceKind::kQpError, qp, static_cast<std::uint64_t>(status));
}

// --- time --------------------------------------------------------------------------------------

Time Endpoint::next_deadline() const {
  return std::min(
      {deadlines_.top(), prober_.next_deadline(), port_status_next_, answers_at_, quiet_at_});
}

void Endpoint::on_deadline(Time now, Duration late_by) {
  while (deadlines_.top() <= now) {
    const std::uint32_t index = deadlines_.top_index();
    Qp& qp = *qps_[index];
    if (qp.requestor.deadline() <= now) {
      auto c = context(now);
      after_requestor(now, qp, qp.requestor.on_deadline(c, late_by));
      qp.silent = qp.requestor.is_peer_silent();
    }
    if (qp.state != QpState::kError) deadlines_.set(index, qp.requestor.deadline());
  }
  prober_.ask(
      now, control_, [this] { return take_request_id(); },
      [this](std::uint32_t peer) { return peers_[peer].answers.value(); });
  if (now >= port_status_next_) {
    resend_port_status(now);
    if (refused_count_ > 0) ask_refused(now);
  }
  if (now >= answers_at_) flush_answers(now);
  if (now >= quiet_at_) report_quiet(now);
}

Requestor::Context Endpoint::context(Time now) {
  return {.now = now,
          .received_at = now,
          .control = control_,
          .prober = prober_,
          .counters = requestor_counters_,
          .probes = probe_budget_,
          .peers = peers_,
          .trace = trace_,
          .host = config_.host};
}

void Endpoint::mark_ready(Qp& qp) {
  if (qp.ready) return;
  qp.ready = true;
  ready_.push(qp_index(qp));
}

std::uint16_t Endpoint::take_request_id() {
  if (++next_request_ == 0) ++next_request_;
  return next_request_;
}

void Endpoint::trace_qp(Time now, TraceKind kind, const Qp& qp, std::uint64_t a) {
  TraceRecord record;
  record.at = now;
  record.host = config_.host;
  record.kind = kind;
  record.qpn = qp.qpn;
  record.a = a;
  trace_->append(record);
}

void Endpoint::trace_datagram(Time now, TraceKind kind, const world::Datagram& d, Qpn qpn,
                              std::uint32_t peer_host) {
  TraceRecord record;
  record.at = now;
  record.host = config_.host;
  record.kind = kind;
  record.port = d.port;
  record.flags =
      static_cast<std::uint8_t>((d.ecn == world::Ecn::kCe ? 1 : 0) |
                                (world::is_trimmed(d.dscp) ? 2 : 0) | (d.intact ? 0 : 4));
  record.qpn = qpn;
  record.peer = peer_host;
  record.ev = d.entropy;
  record.size = d.payload.size;
  record.header_size = static_cast<std::uint8_t>(std::min(d.header.size(), record.header.size()));
  std::copy_n(d.header.begin(), record.header_size, record.header.begin());
  trace_->append(record);
}

}  // namespace weft::transport
