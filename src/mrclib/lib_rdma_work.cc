// LibRdma: posting, completions, failures, waiting, planes.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "mrclib/lib_rdma.h"
#include "mrclib/set_up.h"
#include "os/clock.h"

namespace weft::mrclib {
namespace {

using rdma::Completion;
using rdma::Status;

// While the program does not sleep, async events are fetched at most once in this time.
constexpr Duration kEventsEvery = Duration::us(100);

// A wr_id holds kind, QP and id of the request, because verbs leave the opcode of a failed
// completion undefined.
std::uint64_t wr_id_of(Completion::Kind kind, rdma::QpIndex qp, std::uint32_t id) {
  return static_cast<std::uint64_t>(kind) << 63 | std::uint64_t{qp} << 32 | id;
}
Completion::Kind kind_of(std::uint64_t wr_id) { return static_cast<Completion::Kind>(wr_id >> 63); }
rdma::QpIndex qp_of(std::uint64_t wr_id) {
  return static_cast<rdma::QpIndex>(wr_id >> 32 & 0x7fff'ffff);
}

Status status_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return Status::kOk;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      return Status::kRetryExceeded;
    case IBV_WC_REM_ACCESS_ERR:
      return Status::kRemoteAccess;
    case IBV_WC_REM_INV_REQ_ERR:
      return Status::kRemoteInvalid;
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return Status::kRemoteOperation;
    case IBV_WC_WR_FLUSH_ERR:
      return Status::kFlushed;
    default:
      return Status::kLocalAccess;
  }
}

// How many requests of a batch come before the first that was refused.
template <typename Request, std::size_t N>
std::size_t accepted_before(const Request* bad, const std::array<Request, N>& batch) {
  return bad == nullptr ? 0 : static_cast<std::size_t>(bad - batch.data());
}

}  // namespace

// --- posting -------------------------------------------------------------------------------------

std::size_t LibRdma::post_writes(Time, rdma::QpIndex qp, std::span<const rdma::Write> writes) {
  // Everything that this process stored before must be visible to the peer that receives the
  // immediate.
  std::atomic_thread_fence(std::memory_order_release);
  if (writes.size() <= kBatch) [[likely]]
    return post_batch(qp, writes);
  std::size_t taken = 0;
  while (taken < writes.size()) {
    const auto batch = writes.subspan(taken, std::min(kBatch, writes.size() - taken));
    const std::size_t accepted = post_batch(qp, batch);
    taken += accepted;
    if (accepted < batch.size()) break;
  }
  return taken;
}

// Posts the writes in one call and returns how many were taken. REQUIRES at most kBatch writes.
std::size_t LibRdma::post_batch(rdma::QpIndex qp, std::span<const rdma::Write> writes) {
  OneQp& one = qps_[qp];
  if (one.has_failed || one.qp == nullptr) return 0;
  const auto count = std::min<std::size_t>(writes.size(), one.sends_max - one.sends);
  if (count == 0) return 0;
  for (std::size_t i = 0; i < count; ++i) {
    const rdma::Write& write = writes[i];
    const ibv_mr* const mr = regions_[write.from].mr;
    WEFT_ASSERT(mr != nullptr && write.from_offset <= mr->length &&
                write.size <= mr->length - write.from_offset);
    set_write({.id = wr_id_of(Completion::Kind::kWrite, qp, write.id),
               .from = reinterpret_cast<std::uintptr_t>(mr->addr) + write.from_offset,
               .to = write.to->at + write.to_offset,
               .size = write.size,
               .lkey = mr->lkey,
               .rkey = write.to->rkey,
               .with_immediate = write.with_immediate,
               .immediate = write.immediate},
              sends_[i], pieces_[i]);
  }
  ibv_send_wr* bad = nullptr;
  ibv_send_wr* const next = std::exchange(sends_[count - 1].next, nullptr);
  const int error = library_.mrc_post_send(one.qp, sends_.data(), &bad);
  sends_[count - 1].next = next;
  const std::size_t accepted = error == 0 ? count : accepted_before(bad, sends_);
  one.sends += static_cast<std::uint32_t>(accepted);
  if (error != 0) note_refusal(one, error);
  return accepted;
}

std::uint32_t LibRdma::post_receives(Time, rdma::QpIndex qp, std::uint32_t count) {
  OneQp& one = qps_[qp];
  if (one.has_failed || one.qp == nullptr) return 0;
  const std::uint32_t room = std::min(count, one.receives_max - one.receives);
  std::uint32_t taken = 0;
  while (taken < room) {
    const std::size_t batch = std::min<std::size_t>(kBatch, room - taken);
    for (std::size_t i = 0; i < batch; ++i)
      receives_[i].wr_id = wr_id_of(Completion::Kind::kReceive, qp, 0);
    ibv_recv_wr* bad = nullptr;
    ibv_recv_wr* const next = std::exchange(receives_[batch - 1].next, nullptr);
    const int error = library_.mrc_post_recv(one.qp, receives_.data(), &bad);
    receives_[batch - 1].next = next;
    const auto accepted =
        static_cast<std::uint32_t>(error == 0 ? batch : accepted_before(bad, receives_));
    one.receives += accepted;
    taken += accepted;
    if (error == 0) continue;
    // libraries return either -1 with errno, or the errno value
    note_refusal(one, error == -1 ? errno : error);
    break;
  }
  return taken;
}

// ENOMEM: the library's queue is smaller than it was asked to be. Any other error: the QP has
// failed.
void LibRdma::note_refusal(OneQp& qp, int error) {
  if (error != ENOMEM) fail(qp, {.status = Status::kLocalAccess, .is_guess = true});
}

// --- completions and failures --------------------------------------------------------------------

// Makes sure that done_ has a completion that is not polled: if there is none, polls the CQ. False
// if the CQ is empty too.
bool LibRdma::refill() {
  if (next_ < count_) return true;
  if (cq_has_failed_) return false;
  next_ = count_ = 0;
  const int polled = library_.mrc_poll_cq(cq_, static_cast<int>(done_.size()), done_.data());
  if (polled < 0) {
    cq_has_failed_ = true;
    fail_all();
    return false;
  }
  count_ = static_cast<std::size_t>(polled);
  for (const ibv_wc& wc : std::span(done_).first(count_)) {
    if (wc.status == IBV_WC_SUCCESS) [[likely]]
      continue;
    const Status status = status_of(wc.status);
    // A request is flushed because something else failed, in most cases because the peer accessed
    // memory that it may not.
    const bool is_guess = status == Status::kFlushed;
    WEFT_ASSERT(qp_of(wc.wr_id) < qps_.size());
    fail(qps_[qp_of(wc.wr_id)],
         {.status = is_guess ? Status::kLocalAccess : status, .is_guess = is_guess});
  }
  return count_ > 0;
}

std::size_t LibRdma::poll(std::span<Completion> out) {
  std::size_t taken = 0;
  while (taken < out.size() && refill()) {
    const std::size_t count = std::min(out.size() - taken, count_ - next_);
    for (const ibv_wc& wc : std::span(done_).subspan(next_, count)) {
      const rdma::QpIndex qp = qp_of(wc.wr_id);
      const Completion::Kind kind = kind_of(wc.wr_id);
      WEFT_ASSERT(qp < qps_.size());
      OneQp& one = qps_[qp];
      if (one.qp == nullptr) continue;  // destroyed after the CQ was polled
      std::uint32_t& posted = kind == Completion::Kind::kWrite ? one.sends : one.receives;
      if (posted > 0) --posted;
      const bool has_size = kind == Completion::Kind::kReceive && wc.status == IBV_WC_SUCCESS;
      out[taken++] = {.kind = kind,
                      .status = status_of(wc.status),
                      .qp = qp,
                      .id = static_cast<std::uint32_t>(wc.wr_id),
                      .immediate = kind == Completion::Kind::kReceive ? be32toh(wc.imm_data) : 0,
                      .size = has_size ? wc.byte_len : 0};
    }
    next_ += count;
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the fence in post_writes()
  return taken;
}

void LibRdma::fail(OneQp& qp, const Reason& reason) {
  if (qp.qp == nullptr) return;  // the QP has been destroyed
  if (!qp.has_failed) {
    qp.has_failed = true;
    ++failures_untold_;
  } else if (!qp.reason_is_guess || reason.is_guess) {
    return;
  }
  qp.reason = reason.status;
  qp.reason_is_guess = reason.is_guess;
}

void LibRdma::fail_all() {
  for (OneQp& qp : qps_) fail(qp, {.status = Status::kLocalAccess});
}

// If the reason of a failure is a guess, the failure is reported only when the CQ is empty: until
// then a completion may have the real reason.
bool LibRdma::poll_failure(rdma::Failure& out) {
  if (os::clock_now() - events_looked_at_ >= kEventsEvery) (void)take_events();
  if (failures_untold_ == 0) return false;
  const bool is_drained = !refill();
  for (rdma::QpIndex i = 0; i < qps_.size(); ++i) {
    OneQp& one = qps_[i];
    if (!one.has_failed || one.is_reported || (one.reason_is_guess && !is_drained)) continue;
    one.is_reported = true;
    --failures_untold_;
    out = {.qp = i, .reason = one.reason};
    return true;
  }
  return false;
}

void LibRdma::fail_group(Time, rdma::GroupId id) {
  WEFT_ASSERT(id < groups_.size());
  const GroupState& state = groups_[id];
  if (!state.is_there) return;
  for (std::uint32_t i = 0; i < state.group.qps; ++i) {
    OneQp& one = qps_[state.group.first_qp + i];
    (void)modify(one, to_state(IBV_QPS_ERR), {});  // fails if the QP has failed already
    fail(one, {.status = Status::kFlushed, .is_guess = true});
  }
}

// Fetches all waiting async events. True if there were any.
bool LibRdma::take_events() {
  events_looked_at_ = os::clock_now();
  const std::uint64_t before = async_events_;
  mrc_async_event event{};
  while (library_.mrc_get_async_event(context_, &event) == 0) {
    ++async_events_;
    on_event(event);
    library_.mrc_ack_async_event(&event);
  }
  return async_events_ != before;
}

void LibRdma::on_event(const mrc_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      for (OneQp& one : qps_) {
        if (one.qp != nullptr && one.qp == event.element.qp)
          fail(one, {.status = Status::kLocalAccess, .is_guess = true});
      }
      return;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
      return fail_all();
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR: {
      if (event.element.port_num < 1 || event.element.port_num > planes_) return;
      const auto bit = static_cast<std::uint8_t>(1u << (event.element.port_num - 1));
      planes_down_ = static_cast<std::uint8_t>(
          event.event_type == IBV_EVENT_PORT_ERR ? planes_down_ | bit : planes_down_ & ~bit);
      return;
    }
    default:
      return;
  }
}

// --- waiting -------------------------------------------------------------------------------------

bool LibRdma::has_news() {
  if (refill() || failures_untold_ > 0) return true;
  if (is_woken_.load(std::memory_order_relaxed) && is_woken_.exchange(false)) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = read(wake_.get(), &count, sizeof(count));
    return true;
  }
  return false;
}

Time LibRdma::progress(Time limit) {
  Time now = waiter_.clock();
  for (waiter_.start(now);; now = waiter_.clock()) {
    if (has_news() || now >= limit) return now;
    if (now - events_looked_at_ >= kEventsEvery && take_events()) return now;
    if (waiter_.may_sleep(now)) break;
    waiter_.yield(now);
  }
  sleep(limit);
  return waiter_.clock();
}

void LibRdma::sleep(Time limit) {
  for (Time now = waiter_.clock(); now < limit; now = waiter_.clock()) {
    library_.mrc_req_notify_cq(cq_, 0);
    if (has_news()) return;  // a completion came before the notification was requested
    std::array<pollfd, 3> fds{pollfd{.fd = channel_fd_, .events = POLLIN, .revents = 0},
                              {.fd = verbs_->async_fd, .events = POLLIN, .revents = 0},
                              {.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    ++sleeps_;
    if (!waiter_.sleep(fds, limit)) continue;
    mrc_cq* cq = nullptr;
    void* ours = nullptr;
    while (fds[0].revents != 0 && library_.mrc_get_cq_event(channel_, &cq, &ours) == 0)
      library_.mrc_ack_cq_events(cq, 1);
    if (fds[1].revents != 0 && take_events()) return;
    if (has_news()) return;
  }
}

void LibRdma::wake() {
  // In this order: who reads the flag takes the word out of the eventfd too.
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof(one));
  is_woken_.store(true);
}

// --- planes --------------------------------------------------------------------------------------

rdma::GroupHealth LibRdma::health(rdma::GroupId id) const {
  WEFT_ASSERT(id < groups_.size());
  return {.planes = planes_,
          .planes_left_out = static_cast<std::uint8_t>(planes_down_ | planes_denied_)};
}

bool LibRdma::change_plane(Time, const PlaneChange& change) {
  if (!options_.changes_ports || change.plane >= planes_) return false;
  if (!library_.mrc_ctl_modify_port.is_present()) return false;
  mrc_ctl_port_attr attr{.port_admin_state = change.denied ? MRC_CTL_PORT_ADMIN_DISABLED
                                                           : MRC_CTL_PORT_ADMIN_ENABLED};
  const auto port = static_cast<std::uint8_t>(change.plane + 1);
  if (library_.mrc_ctl_modify_port(context_, port, &attr, MRC_CTL_PORT_ADMIN_STATE) != 0)
    return false;
  const auto bit = static_cast<std::uint8_t>(1u << change.plane);
  planes_denied_ =
      static_cast<std::uint8_t>(change.denied ? planes_denied_ | bit : planes_denied_ & ~bit);
  ++plane_changes_;
  return true;
}

CounterTable LibRdma::counters() const {
  return {{.name = "mrclib.async_events", .unit = "events", .value = async_events_},
          {.name = "mrclib.sleeps", .unit = "calls", .value = sleeps_}};
}

}  // namespace weft::mrclib
