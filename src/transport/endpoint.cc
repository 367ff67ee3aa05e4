// Endpoint, the application's side: posting, completions, and timers.
#include "transport/endpoint.h"

#include <algorithm>

#include "base/assert.h"

namespace weft::transport {
namespace {

// A write has at most half of the PSN space: beyond that the order of two PSNs is undefined.
std::uint64_t write_size_max(const Qp& qp) { return std::uint64_t{qp.params->mtu} << 22; }

}  // namespace

// --- work --------------------------------------------------------------------------------------

// These error messages fit into a string without allocation: a full queue is an everyday event.
Result<void> Endpoint::post_write(Time now, Qpn qpn, const WriteRequest& request) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (!qp->may_send()) return Error{ErrorKind::kWrongState, "QP not in RTS"};
  if (!has_room(*qp)) return Error{ErrorKind::kExhausted, "queue is full"};
  if (request.size > write_size_max(*qp)) return Error{ErrorKind::kInvalid, "write too long"};
  completions_.reserve();
  qp->requestor.post(now, request);
  on_posted(*qp);
  return {};
}

std::size_t Endpoint::post_writes(Time now, Qpn qpn,
                                  std::span<const WriteRequest* const> requests) {
  Qp* const qp = qps_.find(qpn);
  if (qp == nullptr || !qp->may_send()) return 0;
  std::size_t taken = 0;
  for (; taken < requests.size(); ++taken) {
    const WriteRequest& request = *requests[taken];
    if (!has_room(*qp) || request.size > write_size_max(*qp)) break;
    completions_.reserve();
    qp->requestor.post(now, request);
  }
  if (taken > 0) on_posted(*qp);
  return taken;
}

void Endpoint::on_posted(Qp& qp) {
  deadlines_.at_latest(qps_.index_of(qp), qp.requestor.deadline());
  mark_ready(qp);
}

Result<void> Endpoint::post_receive(Time, Qpn qpn, std::uint64_t id) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return Error{ErrorKind::kNotFound, "no such QP"};
  if (qp->state == QpState::kError) return Error{ErrorKind::kWrongState, "QP is in ERR"};
  if (qp->receives.full() || !completions_.has_room()) {
    return Error{ErrorKind::kExhausted, "queue is full"};
  }
  completions_.reserve();
  qp->receives.push(id);
  return {};
}

std::size_t Endpoint::poll_completions(std::span<Completion> out) { return completions_.poll(out); }

// Hands the finished writes to the application.
void Endpoint::complete(Qp& qp) {
  Completion completion;
  while (qp.requestor.poll_completion(completion)) completions_.push(completion);
  completions_.release(qp.requestor.take_unsignalled_done());
}

bool Endpoint::poll_failure(QpFailure& out) {
  if (failures_.empty()) return false;
  out = failures_.front();
  failures_.pop();
  return true;
}

void Endpoint::forget_news(Qpn qpn) {
  WEFT_ASSERT(qps_.find(qpn) == nullptr);
  completions_.forget(qpn);
  for (std::size_t left = failures_.size(); left > 0; --left) {
    const QpFailure one = failures_.front();
    failures_.pop();
    if (one.qpn != qpn) failures_.push(one);
  }
}

void Endpoint::fail(Time now, Qp& qp, Status status) {
  qp.state = QpState::kError;
  ++counters_.qp_failures[static_cast<std::size_t>(status)];
  if (config_.tell_failures && !failures_.full()) failures_.push({.qpn = qp.qpn, .status = status});
  qp.requestor.fail(status);
  complete(qp);
  WEFT_ASSERT(qp.requestor.incomplete() == 0);
  while (!qp.receives.empty()) {
    completions_.push({.id = qp.receives.front(),
                       .qpn = qp.qpn,
                       .kind = CompletionKind::kReceiveImmediate,
                       .status = Status::kFlushed});
    qp.receives.pop();
  }
  deadlines_.remove(qps_.index_of(qp));
  trace_.qp_failed(now, qp, status);
}

// --- time --------------------------------------------------------------------------------------

Time Endpoint::time_of(EndpointTimer timer) const {
  switch (timer) {
    case EndpointTimer::kRequestor:
      return deadlines_.top();
    case EndpointTimer::kEvProbe:
      return prober_.next_deadline();
    case EndpointTimer::kPortStatus:
      return ports_.resend_at();
    case EndpointTimer::kRefused:
      return refused_.next_at();
    case EndpointTimer::kDelayedAnswers:
      return answers_.answer_at();
    case EndpointTimer::kQuietReport:
      return answers_.quiet_at();
  }
  return kNever;
}

void Endpoint::on_timer(EndpointTimer timer, Time now, Duration late_by) {
  switch (timer) {
    case EndpointTimer::kRequestor:
      return on_requestor_timers(now, late_by);
    case EndpointTimer::kEvProbe:
      return prober_.ask(now, control_, request_ids_,
                         [this](std::uint32_t peer) { return peers_[peer].answers.value(); });
    case EndpointTimer::kPortStatus:
      return resend_port_status(now);
    case EndpointTimer::kRefused:
      return ask_refused(now);
    case EndpointTimer::kDelayedAnswers:
      return flush_answers(now);
    case EndpointTimer::kQuietReport:
      return report_quiet(now);
  }
}

Time Endpoint::next_deadline() const {
  Time next = kNever;
  for (const EndpointTimer timer : kEndpointTimers) next = std::min(next, time_of(timer));
  return next;
}

void Endpoint::on_deadline(Time now, Duration late_by) {
  WEFT_ASSERT(now >= next_deadline());
  for (const EndpointTimer timer : kEndpointTimers) {
    if (time_of(timer) <= now) on_timer(timer, now, late_by);
  }
}

void Endpoint::on_requestor_timers(Time now, Duration late_by) {
  while (deadlines_.top() <= now) {
    const std::uint32_t index = deadlines_.top_index();
    Qp& qp = qps_[index];
    if (qp.requestor.deadline() <= now) {
      auto c = context(now);
      after_requestor(now, qp, qp.requestor.on_deadline(c, late_by));
      qp.peer_is_silent = qp.requestor.is_peer_silent();
    }
    if (qp.state != QpState::kError) deadlines_.set(index, qp.requestor.deadline());
  }
}

void Endpoint::resend_port_status(Time now) {
  ports_.begin_resend_round();
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].first_qp != Peer::kNobody)
      ports_.resend_if_due(now, i, peers_[i].ports, control_);
  }
}

void Endpoint::ask_refused(Time now) {
  refused_.begin_round();
  qps_.for_each([&](Qp& qp) {
    const auto step = refused_.next_step(
        now, qp.refused, {.may_send = qp.may_send(), .last_heard = qp.requestor.last_heard()});
    if (step == RefusedPeers::Step::kFail) {
      ++counters_.qps_refused;
      fail(now, qp, Status::kRetryExceeded);
    } else if (step == RefusedPeers::Step::kAsk) {
      const std::uint64_t dropped = control_.dropped();
      auto c = context(now);
      qp.requestor.probe_planes(c);
      refused_.on_asked(now, qp.refused, control_.dropped() == dropped);
    }
  });
}

// A quiet report is sent on every plane: the packet that would have asked for a SACK may be lost.
void Endpoint::report_quiet(Time now) {
  for (std::size_t left = answers_.begin_quiet_round(); left > 0; --left) {
    const std::uint32_t index = answers_.take_watched();
    Qp& qp = qps_[index];
    const AnswerScheduler::Watched watched{
        .owes_sack = qp.responder.owes_sack() && qp.may_receive(),
        .quiet = qp.params->peer->sack_after_quiet};
    if (!answers_.is_quiet(now, index, qp.answers, watched)) continue;
    const PortMask usable = peers_[qp.peer].usable(ports_.up());
    for (std::uint32_t port = 0; port < ports_.count(); ++port) {
      if ((usable >> port & 1) == 0) continue;
      qp.responder.report({.port = PortChoice::only(static_cast<PortIndex>(port))}, control_,
                          responder_counters_);
      ++counters_.quiet_sacks;
    }
    qp.responder.settle();
  }
}

Requestor::Context Endpoint::context(Time now) {
  return {.now = now,
          .received_at = now,
          .control = control_,
          .prober = prober_,
          .counters = requestor_counters_,
          .probes = probe_budget_,
          .peers = peers_.all(),
          .trace = trace_.get(),
          .host = config_.host};
}

}  // namespace weft::transport
