#include "scenario/host.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/assert.h"

namespace weft::scenario {
namespace {

constexpr std::size_t kCompletionsBatch = 16;

// The id of a work request is flow << 32 | message; the id of a receive is end << 32 | number.
constexpr std::uint64_t id_of(std::uint32_t high, std::uint64_t low) {
  return std::uint64_t{high} << 32 | (low & 0xffff'ffff);
}
constexpr std::uint32_t high_of(std::uint64_t id) { return static_cast<std::uint32_t>(id >> 32); }
constexpr std::uint32_t low_of(std::uint64_t id) { return static_cast<std::uint32_t>(id); }

}  // namespace

Host::Host(const Setup& setup)
    : plan_(setup.plan),
      scoreboard_(setup.scoreboard),
      trace_(setup.trace),
      host_(setup.host),
      send_queue_max_(setup.config.send_queue_max),
      receive_queue_max_(setup.config.receive_queue_max),
      endpoint_(setup.config, setup.memory, setup.trace) {
  set_hot(endpoint_);
  const auto ops = plan_.ops_of(host_);
  ends_.reserve(plan_.ends_of(host_).size());
  active_.resize(std::min<std::size_t>(ops.size(), plan_.active_max));
  if (!ops.empty()) start_at_ = Time::from_start(ops.front().start);
}

Result<transport::Qpn> Host::create_qp(const transport::QpConfig& config, Psn first_psn) {
  WEFT_ASSERT(ends_.size() < plan_.ends_of(host_).size());
  WEFT_TRY(const transport::Qpn qpn, endpoint_.create_qp(config, first_psn));
  ends_.push_back({.qpn = qpn});
  return qpn;
}

Result<void> Host::connect(Time now, std::uint32_t end, const transport::PeerInfo& peer) {
  return endpoint_.connect(now, ends_[end].qpn, peer);
}

Result<void> Host::begin(Time now) {
  WEFT_ASSERT(ends_.size() == plan_.ends_of(host_).size());
  for (std::uint32_t end = 0; end < ends_.size(); ++end) {
    const std::uint32_t count = std::min(receives_expected(end), receive_queue_max_);
    for (std::uint32_t i = 0; i < count; ++i) post_receive(now, end);
  }
  return {};
}

std::size_t Host::heap_bytes() const {
  return ends_.capacity() * sizeof(EndState) + active_.capacity() * sizeof(Active);
}

std::string Host::stuck() const {
  for (const Active& active : std::span(active_).first(active_count_)) {
    if (record_of(active).state == FlowState::kAbandoned) continue;
    const Op& op = op_of(active);
    const auto view = endpoint_.view(ends_[op.first_end].qpn);
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

// --- world::Node -------------------------------------------------------------------------------

void Host::on_datagrams(Time now, std::span<const world::Datagram> in) {
  endpoint_.on_datagrams(now, in);
  take_completions(now);
}

void Host::on_port(Time now, world::PortIndex port, world::PortState state) {
  endpoint_.on_port(now, port, state);
  take_completions(now);
}

void Host::on_deadline(Time now, Duration late_by) {
  const bool starts = now >= start_at_;
  if (now >= endpoint_.next_deadline()) endpoint_.on_deadline(now, late_by);
  take_completions(now);
  if (starts) advance(now);
}

Time Host::next_deadline() const { return std::min(start_at_, endpoint_.next_deadline()); }

std::size_t Host::poll_transmit(Time now, std::span<const world::PortRoom> room,
                                std::span<world::Datagram> out) {
  return endpoint_.poll_transmit(now, room, out);
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

void Host::take_completions(Time now) {
  std::array<transport::Completion, kCompletionsBatch> batch;
  bool any = false;
  for (std::size_t count = kCompletionsBatch; count == kCompletionsBatch;) {
    count = endpoint_.poll_completions(batch);
    for (std::size_t i = 0; i < count; ++i) {
      any = true;
      if (batch[i].kind == transport::CompletionKind::kWrite) {
        on_write_completed(now, batch[i]);
      } else {
        on_receive_completed(now, batch[i]);
      }
    }
  }
  if (any) advance(now);
}

void Host::on_write_completed(Time now, const transport::Completion& completion) {
  const std::uint32_t op_index = high_of(completion.id) - plan_.ops_from[host_];
  const auto in_use = std::span(active_).first(active_count_);
  const auto found =
      std::find_if(in_use.begin(), in_use.end(), [&](const Active& a) { return a.op == op_index; });
  WEFT_ASSERT(found != in_use.end());  // every message belongs to an active operation
  Active& active = *found;
  const Op& op = op_of(active);
  const std::uint32_t size = message_bytes(plan_, op, low_of(completion.id));
  trace_completion(now, completion, size);
  --ends_[op.first_end + low_of(completion.id) % plan_.qps_per_peer].posted;
  ++active.completed;

  FlowRecord& record = record_of(active);
  if (completion.status != transport::Status::kOk) {
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

void Host::on_receive_completed(Time now, const transport::Completion& completion) {
  const std::uint32_t end = high_of(completion.id);
  trace_completion(now, completion, completion.size);
  if (completion.status != transport::Status::kOk) return;
  EndState& state = ends_[end];
  ++state.received;
  if (state.receives_posted < receives_expected(end)) post_receive(now, end);
}

void Host::post_receive(Time now, std::uint32_t end) {
  EndState& state = ends_[end];
  const std::uint64_t id = id_of(end, state.receives_posted);
  // The QP is in error, which its flows report.
  if (!endpoint_.post_receive(now, state.qpn, id)) return;
  ++state.receives_posted;
  if (trace_ == nullptr) return;
  TraceRecord record{.at = now, .host = host_, .kind = TraceKind::kPostRecv};
  record.qpn = state.qpn;
  record.id = id;
  trace_->append(record);
}

void Host::trace_completion(Time now, const transport::Completion& completion, std::uint32_t size) {
  if (trace_ == nullptr) return;
  TraceRecord record{.at = now, .host = host_, .kind = TraceKind::kComplete};
  record.flags = completion.kind == transport::CompletionKind::kReceiveImmediate ? 1 : 0;
  record.qpn = completion.qpn;
  record.id = completion.id;
  record.a = static_cast<std::uint64_t>(completion.status);
  record.b = size;
  record.c = completion.immediate;
  trace_->append(record);
}

// --- work --------------------------------------------------------------------------------------

void Host::advance(Time now) {
  const auto ops = plan_.ops_of(host_);
  for (std::uint32_t i = 0; i < active_count_;) {
    Active& active = active_[i];
    post_messages(now, active);
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
    post_messages(now, active);
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

void Host::post_messages(Time now, Active& active) {
  while (active.posted - active.completed < plan_.outstanding && has_more(now, active)) {
    if (!post_message(now, active)) return;
  }
}

// False if the QP accepts no more work requests now.
bool Host::post_message(Time now, Active& active) {
  const Op& op = op_of(active);
  const FlowIndex flow = flow_of(active);
  const std::uint64_t k = active.posted;
  EndState& end = ends_[op.first_end + k % plan_.qps_per_peer];
  if (end.posted == send_queue_max_) return false;
  transport::WriteRequest request;
  request.id = id_of(flow, k);
  request.local_at = request.remote_at = flow_base(flow) + k * message_size(plan_, op);
  request.rkey = op.bad_rkey ? kBadKey : flow_key(flow);
  request.size = message_bytes(plan_, op, k);
  request.with_immediate = is_signalled(plan_, op, k);
  request.immediate = request.with_immediate ? flow : 0;
  if (!endpoint_.post_write(now, end.qpn, request)) {
    FlowRecord& record = record_of(active);
    if (!active.failed) record.status = transport::Status::kFlushed;
    active.failed = true;  // the QP is in error
    return false;
  }
  ++end.posted;
  ++active.posted;
  if (trace_ == nullptr) return true;
  TraceRecord record{.at = now, .host = host_, .kind = TraceKind::kPost};
  record.flags = static_cast<std::uint8_t>((request.with_immediate ? 1 : 0) | 2);
  record.qpn = end.qpn;
  record.id = request.id;
  record.a = request.remote_at;
  record.b = request.size;
  record.c = request.immediate;
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
