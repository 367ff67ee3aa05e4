#include "engine/endpoint_rdma.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "base/assert.h"

namespace weft::engine {
namespace {

constexpr std::uint16_t kImmediatesMax = 128;
// A longer write in packets of the smallest MTU would take more than half of the PSN space.
constexpr std::uint32_t kWriteBytesMax = 1u << 30;

rdma::Status status_of(transport::Status status) {
  switch (status) {
    case transport::Status::kOk:
      return rdma::Status::kOk;
    case transport::Status::kRetryExceeded:
      return rdma::Status::kRetryExceeded;
    case transport::Status::kRemoteAccess:
      return rdma::Status::kRemoteAccess;
    case transport::Status::kRemoteInvalid:
      return rdma::Status::kRemoteInvalid;
    case transport::Status::kRemoteOperation:
      return rdma::Status::kRemoteOperation;
    case transport::Status::kLocalAccess:
      return rdma::Status::kLocalAccess;
    case transport::Status::kFlushed:
      return rdma::Status::kFlushed;
  }
  return rdma::Status::kFlushed;
}

// The queues of an endpoint have a power of two of places.
std::uint64_t places(std::uint32_t bound) {
  return bound == 0 ? 0 : std::bit_ceil(std::uint64_t{bound});
}

Error no_such(const char* what, std::uint32_t id) {
  return {ErrorKind::kNotFound, fmt::format("{} {} is not there", what, id)};
}

}  // namespace

// --- set-up ------------------------------------------------------------------------------------

void EndpointRdma::bound_queues(const rdma::GroupRequest& request, transport::QpConfig& config) {
  // For an endpoint 0 is a default; a QP that takes none is refused its posts.
  config.send_queue_max = std::max(request.sends_max, 1u);
  config.receive_queue_max = std::max(request.receives_max, 1u);
  config.wimm_max = config.wimm_dest_max = kImmediatesMax;
}

Result<rdma::Group> EndpointRdma::create_qps(Time now, const rdma::GroupRequest& request,
                                             transport::QpConfig config, Prng& prng) {
  const std::uint64_t sends = request.qps * places(request.sends_max);
  const std::uint64_t receives = request.qps * places(request.receives_max);
  if (sends_reserved_ + sends > bounds_.sends_max ||
      receives_reserved_ + receives > bounds_.receives_max) {
    return Error{
        ErrorKind::kExhausted,
        fmt::format("a group of {} QPs asks for {} sends and {} receives; {} and {} are left",
                    request.qps, sends, receives, bounds_.sends_max - sends_reserved_,
                    bounds_.receives_max - receives_reserved_)};
  }
  if (request.qps == 0 || request.receives_posted > request.receives_max)
    return Error{ErrorKind::kInvalid, "a group has QPs, and posts no more receives than its bound"};
  bound_queues(request, config);
  groups_.push_back({.group = {.id = static_cast<rdma::GroupId>(groups_.size()),
                               .first_qp = static_cast<rdma::QpIndex>(qps_.size()),
                               .qps = request.qps},
                     .request = request});
  GroupState& state = groups_.back();
  sends_reserved_ += static_cast<std::uint32_t>(sends);
  receives_reserved_ += static_cast<std::uint32_t>(receives);
  for (std::uint32_t i = 0; i < request.qps; ++i) {
    const Psn first(prng.below(Psn::kMask + 1));
    const auto qpn = endpoint_->create_qp(config, first);
    if (!qpn) {
      state.group.qps = i;
      (void)destroy_qps(now, state);
      return qpn.error();
    }
    const rdma::QpIndex index = add_qp(*qpn, first);
    qps_[index].sends = request.sends_max > 0;
    qps_[index].receives = request.receives_max > 0;
    const std::uint32_t posted = post_receives(now, index, request.receives_posted);
    // the new queue is empty, and this is its bound
    WEFT_ASSERT(posted == request.receives_posted);
  }
  return state.group;
}

rdma::QpIndex EndpointRdma::add_qp(transport::Qpn qpn, Psn first_psn) {
  qps_.push_back({.qpn = qpn, .first_psn = first_psn});
  return static_cast<rdma::QpIndex>(qps_.size() - 1);
}

Result<void> EndpointRdma::destroy_qps(Time now, GroupState& state) {
  WEFT_ASSERT(state.is_there);
  for (std::uint32_t i = 0; i < state.group.qps; ++i) {
    OneQp& qp = qps_[state.group.first_qp + i];
    WEFT_CHECK(endpoint_->destroy_qp(now, qp.qpn));
    endpoint_->forget_news(qp.qpn);
    qp = {};  // another QP may get its number
  }
  sends_reserved_ -=
      static_cast<std::uint32_t>(state.request.qps * places(state.request.sends_max));
  receives_reserved_ -=
      static_cast<std::uint32_t>(state.request.qps * places(state.request.receives_max));
  state.is_there = false;
  return {};
}

rdma::RegionId EndpointRdma::add_range(std::uint64_t at, std::uint64_t size) {
  regions_.push_back({.at = at, .size = size});
  return static_cast<rdma::RegionId>(regions_.size() - 1);
}

Result<EndpointRdma::GroupState*> EndpointRdma::find_group(rdma::GroupId id) {
  if (id >= groups_.size() || !groups_[id].is_there) return no_such("group", id);
  return &groups_[id];
}

Result<EndpointRdma::OwnRegion*> EndpointRdma::find_region(rdma::RegionId id) {
  if (id >= regions_.size() || !regions_[id].is_there) return no_such("region", id);
  return &regions_[id];
}

const EndpointRdma::GroupState& EndpointRdma::group(rdma::GroupId id) const {
  WEFT_ASSERT(id < groups_.size());
  return groups_[id];
}

const EndpointRdma::OwnRegion& EndpointRdma::region(rdma::RegionId id) const {
  WEFT_ASSERT(id < regions_.size());
  return regions_[id];
}

std::size_t EndpointRdma::table_bytes() const {
  return qps_.capacity() * sizeof(OneQp) + groups_.capacity() * sizeof(GroupState) +
         regions_.capacity() * sizeof(OwnRegion);
}

rdma::Limits EndpointRdma::limits() const {
  return {.write_bytes_max = kWriteBytesMax, .immediates_max = kImmediatesMax};
}

// --- work --------------------------------------------------------------------------------------

transport::WriteRequest EndpointRdma::request_for(rdma::QpIndex qp,
                                                  const rdma::Write& write) const {
  const OwnRegion& from = region(write.from);
  WEFT_ASSERT(from.is_there && write.from_offset <= from.size &&
              write.size <= from.size - write.from_offset);
  return {.id = std::uint64_t{qp} << 32 | write.id,
          .local_at = from.at + write.from_offset,
          .remote_at = write.to->at + write.to_offset,
          .rkey = write.to->rkey,
          .size = write.size,
          .with_immediate = write.with_immediate,
          .immediate = write.immediate};
}

std::size_t EndpointRdma::post_writes(Time now, rdma::QpIndex qp,
                                      std::span<const rdma::Write> writes) {
  // Everything that this process stored before must be visible to a peer that maps our memory and
  // receives the immediate.
  std::atomic_thread_fence(std::memory_order_release);
  if (!qps_[qp].sends) return 0;
  const transport::Qpn qpn = qps_[qp].qpn;
  if (writes.size() == 1) {  // by far the most calls
    const transport::WriteRequest request = request_for(qp, writes[0]);
    const transport::WriteRequest* const one = &request;
    return endpoint_->post_writes(now, qpn, {&one, 1});
  }
  constexpr std::size_t kBatch = 16;
  std::size_t taken = 0;
  while (taken < writes.size()) {
    std::array<transport::WriteRequest, kBatch> requests;
    std::array<const transport::WriteRequest*, kBatch> pointers{};
    const std::size_t count = std::min(kBatch, writes.size() - taken);
    for (std::size_t i = 0; i < count; ++i) {
      requests[i] = request_for(qp, writes[taken + i]);
      pointers[i] = &requests[i];
    }
    const std::size_t accepted = endpoint_->post_writes(now, qpn, std::span(pointers).first(count));
    taken += accepted;
    if (accepted < count) break;
  }
  return taken;
}

std::uint32_t EndpointRdma::post_receives(Time now, rdma::QpIndex qp, std::uint32_t count) {
  if (!qps_[qp].receives) return 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!endpoint_->post_receive(now, qps_[qp].qpn, std::uint64_t{qp} << 32)) return i;
  }
  return count;
}

std::size_t EndpointRdma::poll(std::span<rdma::Completion> out) {
  constexpr std::size_t kBatch = 16;
  std::size_t taken = 0;
  while (taken < out.size()) {
    std::array<transport::Completion, kBatch> batch;
    const std::size_t room = std::min(kBatch, out.size() - taken);
    const std::size_t count = endpoint_->poll_completions(std::span(batch).first(room));
    for (const transport::Completion& one : std::span(batch).first(count)) {
      const bool is_write = one.kind == transport::CompletionKind::kWrite;
      out[taken++] = {
          .kind = is_write ? rdma::Completion::Kind::kWrite : rdma::Completion::Kind::kReceive,
          .status = status_of(one.status),
          .qp = static_cast<rdma::QpIndex>(one.id >> 32),
          .id = static_cast<std::uint32_t>(one.id),
          .immediate = one.immediate,
          .size = is_write ? 0 : one.size};
    }
    if (count < room) break;
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the fence in post_writes()
  return taken;
}

bool EndpointRdma::poll_failure(rdma::Failure& out) {
  transport::Endpoint::QpFailure failure;
  while (endpoint_->poll_failure(failure)) {
    const auto at = std::find_if(qps_.begin(), qps_.end(),
                                 [&](const OneQp& qp) { return qp.qpn == failure.qpn; });
    if (at == qps_.end()) continue;
    out = {.qp = static_cast<rdma::QpIndex>(at - qps_.begin()),
           .reason = status_of(failure.status)};
    return true;
  }
  return false;
}

void EndpointRdma::fail_group(Time now, rdma::GroupId id) {
  const GroupState& state = group(id);
  if (!state.is_there) return;
  for (std::uint32_t i = 0; i < state.group.qps; ++i)
    // fails if the QP has failed already
    (void)endpoint_->fail_qp(now, qps_[state.group.first_qp + i].qpn);
}

// --- paths -------------------------------------------------------------------------------------

rdma::GroupHealth EndpointRdma::health(rdma::GroupId id) const {
  const GroupState& state = group(id);
  if (!state.is_there) return {};
  const auto view = endpoint_->view(qps_[state.group.first_qp].qpn);
  const auto mask = static_cast<std::uint8_t>((1u << bounds_.planes) - 1);
  const auto left_out = static_cast<std::uint8_t>(view.ports_left_out & mask);
  return {.planes = bounds_.planes,
          .planes_left_out = state.over_shared_memory ? std::uint8_t{0} : left_out,
          .over_shared_memory = state.over_shared_memory,
          .window_bytes = view.cwnd_bytes};
}

CounterTable EndpointRdma::counters() const {
  CounterTable table = endpoint_->counters();
  const CounterTable peers = endpoint_->peer_counters();
  table.insert(table.end(), peers.begin(), peers.end());
  return table;
}

bool EndpointRdma::change_plane(Time now, const PlaneChange& change) {
  if (change.plane >= bounds_.planes) return false;
  endpoint_->set_port_admin(now, change.plane, !change.denied);
  return true;
}

}  // namespace weft::engine
