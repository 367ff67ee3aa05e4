#include "scenario/host.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/assert.h"

namespace weft::scenario {
namespace {

constexpr std::size_t kCompletionsBatch = 16;

// The id in the trace: for a write flow << 32 | message, for a receive end << 32 | number.
constexpr std::uint64_t id_of(std::uint32_t high, std::uint64_t low) {
  return std::uint64_t{high} << 32 | (low & 0xffff'ffff);
}

}  // namespace

Host::Host(const Setup& setup)
    : plan_(setup.plan),
      scoreboard_(setup.scoreboard),
      trace_(setup.trace),
      host_(setup.host),
      source_(setup.source),
      sends_max_(setup.sends_max),
      receives_max_(setup.receives_max) {
  const auto ops = plan_.ops_of(host_);
  const std::size_t ends = plan_.ends_of(host_).size();
  ends_.reserve(ends);
  active_.resize(std::min<std::size_t>(ops.size(), plan_.active_max));
  // The most messages that both bounds allow at the same time.
  posted_.resize(std::min<std::size_t>(active_.size() * plan_.outstanding, ends * sends_max_));
  for (std::uint32_t i = 0; i < posted_.size(); ++i) posted_[i].op = i + 1;
  if (!ops.empty()) start_at_ = Time::from_start(ops.front().start);
}

void Host::add_end(transport::Qpn qpn) {
  WEFT_ASSERT(ends_.size() < plan_.ends_of(host_).size());
  ends_.push_back({.qpn = qpn});
}

void Host::begin(Time now, rdma::Rdma& rdma) {
  WEFT_ASSERT(ends_.size() == plan_.ends_of(host_).size());
  for (std::uint32_t end = 0; end < ends_.size(); ++end) {
    const std::uint32_t count = std::min(receives_expected(end), receives_max_);
    for (std::uint32_t i = 0; i < count; ++i) post_receive(now, end, rdma);
  }
}

std::size_t Host::heap_bytes() const {
  return ends_.capacity() * sizeof(EndState) + active_.capacity() * sizeof(Active) +
         posted_.capacity() * sizeof(Posted);
}

bool Host::is_done() const { return active_count_ == 0 && op_next_ == plan_.ops_of(host_).size(); }

std::string Host::stuck(const transport::Endpoint& endpoint) const {
  for (const Active& active : std::span(active_).first(active_count_)) {
    if (record_of(active).state == FlowState::kAbandoned) continue;
    const Op& op = op_of(active);
    const auto view = endpoint.view(ends_[op.first_end].qpn);
    std::string text = "flow " + std::to_string(flow_of(active)) + " from host " +
                       std::to_string(host_) + " to host " + std::to_string(op.peer) + ": " +
                       std::to_string(active.completed) + " of " + std::to_string(active.posted) +
                       " posted messages completed, " + std::to_string(view.inflight_bytes) +
                       " bytes in flight, " + std::to_string(view.lost_waiting) +
                       " packets to be sent again, " + std::to_string(view.ev_active) +
                       " EVs in rotation";
    if (view.peer_silent) text += ", the peer is silent";
    return text;
  }
  const auto ops = plan_.ops_of(host_);
  if (op_next_ == ops.size() || active_count_ == active_.size()) return {};
  const Op& op = ops[op_next_];
  std::string text = "flow " + std::to_string(plan_.ops_from[host_] + op_next_) + " from host " +
                     std::to_string(host_) + " to host " + std::to_string(op.peer) + " waits for ";
  if (is_released(op)) return text + "its start";
  return text + "message " + std::to_string(op.after_receives) + " of host " +
         std::to_string(plan_.peer_of(host_, plan_.ends_of(host_)[op.after_end[0]]));
}

// --- rdma::Program -----------------------------------------------------------------------------

void Host::step(Time now, rdma::Rdma& rdma) {
  const bool starts = now >= start_at_;
  if (take_completions(now, rdma) || starts) advance(now, rdma);
}

// --- completions -------------------------------------------------------------------------------

const Op& Host::op_of(const Active& active) const { return plan_.ops_of(host_)[active.op]; }
FlowIndex Host::flow_of(const Active& active) const { return plan_.ops_from[host_] + active.op; }
FlowRecord& Host::record_of(const Active& active) const {
  return scoreboard_.flows[flow_of(active)];
}
std::uint32_t Host::receives_expected(std::uint32_t end) const {
  return plan_.ends_of(host_)[end].receives;
}

// Returns false if there was no completion.
bool Host::take_completions(Time now, rdma::Rdma& rdma) {
  std::array<rdma::Completion, kCompletionsBatch> batch;
  bool any = false;
  for (std::size_t count = kCompletionsBatch; count == kCompletionsBatch;) {
    count = rdma.poll(batch);
    for (std::size_t i = 0; i < count; ++i) {
      any = true;
      if (batch[i].kind == rdma::Completion::Kind::kWrite) {
        on_write_completed(now, batch[i]);
      } else {
        on_receive_completed(now, batch[i], rdma);
      }
    }
  }
  return any;
}

void Host::on_write_completed(Time now, const rdma::Completion& completion) {
  WEFT_ASSERT(completion.id < posted_.size());
  const Posted message = posted_[completion.id];
  posted_[completion.id].op = posted_free_;
  posted_free_ = completion.id;
  const auto in_use = std::span(active_).first(active_count_);
  const auto found = std::find_if(in_use.begin(), in_use.end(),
                                  [&](const Active& a) { return a.op == message.op; });
  WEFT_ASSERT(found != in_use.end());  // every message belongs to an active operation
  Active& active = *found;
  const std::uint32_t size = message_bytes(plan_, op_of(active), message.message);
  EndState& end = ends_[completion.qp];
  --end.posted;
  ++active.completed;
  if (trace_ != nullptr) {
    TraceRecord record{.at = now, .host = host_, .kind = TraceKind::kComplete};
    record.qpn = end.qpn;
    record.id = id_of(flow_of(active), message.message);
    record.a = static_cast<std::uint64_t>(completion.status);
    record.b = size;
    trace_->append(record);
  }

  FlowRecord& record = record_of(active);
  if (completion.status != rdma::Status::kOk) {
    if (!active.failed) record.status = completion.status;
    active.failed = true;
    return;
  }
  record.bytes_completed += size;
  record.last_completion = now;
  record.longest_pause = std::max(record.longest_pause, now - active.progress_at);
  active.progress_at = now;
  scoreboard_.series.add(now, size);
}

void Host::on_receive_completed(Time now, const rdma::Completion& completion, rdma::Rdma& rdma) {
  EndState& end = ends_[completion.qp];
  const std::uint32_t number = end.receives_ended++;
  if (trace_ != nullptr) {
    TraceRecord record{.at = now, .host = host_, .kind = TraceKind::kComplete};
    record.flags = 1;
    record.qpn = end.qpn;
    record.id = id_of(completion.qp, number);
    record.a = static_cast<std::uint64_t>(completion.status);
    record.b = completion.size;
    record.c = completion.immediate;
    trace_->append(record);
  }
  if (completion.status != rdma::Status::kOk) return;
  ++end.received;
  if (end.receives_posted < receives_expected(completion.qp))
    post_receive(now, completion.qp, rdma);
}

void Host::post_receive(Time now, std::uint32_t end, rdma::Rdma& rdma) {
  EndState& state = ends_[end];
  // If nothing was posted, the QP is in error, which its flows report.
  if (rdma.post_receives(now, end, 1) == 0) return;
  const std::uint64_t id = id_of(end, state.receives_posted++);
  if (trace_ == nullptr) return;
  TraceRecord record{.at = now, .host = host_, .kind = TraceKind::kPostRecv};
  record.qpn = state.qpn;
  record.id = id;
  trace_->append(record);
}

// --- work --------------------------------------------------------------------------------------

void Host::advance(Time now, rdma::Rdma& rdma) {
  const auto ops = plan_.ops_of(host_);
  for (std::uint32_t i = 0; i < active_count_;) {
    Active& active = active_[i];
    post_messages(now, active, rdma);
    if (active.completed < active.posted || has_more(now, active)) {
      ++i;
      continue;
    }
    finish(active);
    active = active_[--active_count_];
  }
  start_at_ = kNever;
  while (op_next_ < ops.size() && active_count_ < active_.size()) {
    const Op& op = ops[op_next_];
    if (!is_released(op)) break;
    if (now < Time::from_start(op.start)) {
      start_at_ = Time::from_start(op.start);
      break;
    }
    Active& active = active_[active_count_];
    active = {.op = op_next_++, .progress_at = now};
    FlowRecord& record = record_of(active);
    if (record.state == FlowState::kAbandoned) continue;
    record.state = FlowState::kActive;
    record.first_post = now;
    post_messages(now, active, rdma);
    if (active.completed < active.posted || has_more(now, active)) {
      ++active_count_;
    } else {
      finish(active);
    }
  }
}

bool Host::is_released(const Op& op) const {
  for (const std::uint32_t first : op.after_end) {
    if (first == kNoEnd) continue;
    for (std::uint32_t k = 0; k < plan_.signalled_qps; ++k) {
      if (ends_[first + k].received < op.after_receives) return false;
    }
  }
  return true;
}

bool Host::has_more(Time now, const Active& active) const {
  if (active.failed) return false;
  const Op& op = op_of(active);
  if (op.bytes == 0) return now < plan_.repeat_until;
  return active.posted < message_count(plan_, op);
}

void Host::post_messages(Time now, Active& active, rdma::Rdma& rdma) {
  while (active.posted - active.completed < plan_.outstanding && has_more(now, active)) {
    if (!post_message(now, active, rdma)) return;
  }
}

// Returns false if the QP accepts no more work requests now.
bool Host::post_message(Time now, Active& active, rdma::Rdma& rdma) {
  const Op& op = op_of(active);
  const FlowIndex flow = flow_of(active);
  const std::uint64_t k = active.posted;
  const auto index = static_cast<std::uint32_t>(op.first_end + k % plan_.qps_per_peer);
  EndState& end = ends_[index];
  if (end.posted == sends_max_) return false;
  const std::uint64_t at = k * message_size(plan_, op);
  const rdma::RemoteRegion to{
      .at = flow_base(flow), .size = flow_span(op), .rkey = op.bad_rkey ? kBadKey : flow_key(flow)};
  rdma::Write write{
      .id = posted_free_, .from = source_, .from_offset = to.at + at, .to_offset = at};
  write.to = &to;
  write.size = message_bytes(plan_, op, k);
  write.with_immediate = is_signalled(plan_, op, k);
  write.immediate = write.with_immediate ? flow : 0;
  if (rdma.post_writes(now, index, {&write, 1}) == 0) {
    FlowRecord& record = record_of(active);
    if (!active.failed) record.status = rdma::Status::kFlushed;
    active.failed = true;  // the QP is in error
    return false;
  }
  WEFT_ASSERT(posted_free_ < posted_.size());
  Posted& message = posted_[posted_free_];
  posted_free_ = message.op;
  message = {.op = active.op, .message = static_cast<std::uint32_t>(k)};
  ++end.posted;
  ++active.posted;
  if (trace_ == nullptr) return true;
  TraceRecord record{.at = now, .host = host_, .kind = TraceKind::kPost};
  record.flags = static_cast<std::uint8_t>((write.with_immediate ? 1 : 0) | 2);
  record.qpn = end.qpn;
  record.id = id_of(flow, k);
  record.a = to.at + at;
  record.b = write.size;
  record.c = write.immediate;
  trace_->append(record);
  return true;
}

void Host::finish(const Active& active) {
  FlowRecord& record = record_of(active);
  if (record.state == FlowState::kAbandoned) return;
  record.state = active.failed ? FlowState::kFailed : FlowState::kCompleted;
  --scoreboard_.flows_left;
}

}  // namespace weft::scenario
