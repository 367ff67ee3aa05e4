#include "engine/net_rdma.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include "engine/process_config.h"
#include "os/clock.h"
#include "os/host_identity.h"
#include "os/random_seed.h"
#include "os/system_error.h"

namespace weft::engine {
namespace {

constexpr std::uint32_t kMpr = 32;
constexpr std::uint32_t kBlocksPerQp = kMpr * 128 / 64 + 2;
constexpr std::uint16_t kImmediatesMax = 128;
// Half of the PSN space, in packets of the smallest MTU.
constexpr std::uint32_t kWriteBytesMax = 1u << 30;

// What a peer is told of a region.
struct RegionWords {
  std::uint64_t at = 0, size = 0;
  std::uint32_t rkey = 0;
  // The memfd behind it, as other processes of this host find it; no descriptor: it cannot be mapped.
  std::int32_t descriptor = -1;
  std::uint64_t host = 0, process = 0, inode = 0;

  static constexpr std::size_t kSize = 48;
  std::vector<std::byte> to_bytes() const {
    std::vector<std::byte> bytes(kSize);
    const Bytes out(bytes);
    base::store64(out, 0, at);
    base::store64(out, 8, size);
    base::store32(out, 16, rkey);
    base::store32(out, 20, static_cast<std::uint32_t>(descriptor));
    base::store64(out, 24, host);
    base::store64(out, 32, process);
    base::store64(out, 40, inode);
    return bytes;
  }
  static Result<RegionWords> from_bytes(ConstBytes in) {
    if (in.size() != kSize) {
      return Error{
          ErrorKind::kInvalid,
          fmt::format("a region's description has {} bytes; expected {}", in.size(), kSize)};
    }
    return RegionWords{.at = base::load64(in, 0),
                       .size = base::load64(in, 8),
                       .rkey = base::load32(in, 16),
                       .descriptor = static_cast<std::int32_t>(base::load32(in, 20)),
                       .host = base::load64(in, 24),
                       .process = base::load64(in, 32),
                       .inode = base::load64(in, 40)};
  }
};

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

Error no_such(const char* what, std::uint32_t id) {
  return {ErrorKind::kNotFound, fmt::format("{} {} is not there", what, id)};
}

}  // namespace

// --- set-up ------------------------------------------------------------------------------------

NetRdma::NetRdma(const NetRdmaOptions& options) : options_(options), prng_(os::random_seed()) {}

Result<std::unique_ptr<NetRdma>> NetRdma::open(const NetRdmaOptions& options) {
  std::unique_ptr<NetRdma> out(new NetRdma(options));
  WEFT_CHECK(out->start());
  return out;
}

NetRdma::~NetRdma() {
  world_.reset();
  for (const Mapping& mapping : mappings_) munmap(mapping.at, mapping.size);
  for (const OwnRegion& region : regions_) {
    if (region.memory.is_open()) munmap(region.bytes, region.size);
  }
}

Result<void> NetRdma::start() {
  options_.world.secured_qps_max = std::max(options_.world.secured_qps_max, options_.qps_max);
  WEFT_TRY(world_, net::UdpWorld::open(options_.world));
  evs_ = world_->evs();
  memory_ = std::make_unique<net::HostMemory>(options_.regions_max, prng_.next());
  auto config =
      endpoint_config(*world_,
                      {.mtu = options_.world.mtu,
                       .burst = options_.burst,
                       .qps_max = options_.qps_max,
                       .evs_max = options_.qps_max * static_cast<std::uint32_t>(evs_.size()),
                       .psn_blocks_max = options_.qps_max * kBlocksPerQp,
                       .completions_max = options_.sends_max + options_.receives_max},
                      prng_);
  config.tell_failures = true;
  endpoint_ = std::make_unique<transport::Endpoint>(config, *memory_, nullptr);
  qps_.reserve(options_.qps_max);
  return world_->attach(world_->addresses(), *endpoint_);
}

Result<rdma::Region> NetRdma::keep_region(std::span<std::byte> memory, os::FileDescriptor fd) {
  WEFT_TRY(const std::uint32_t rkey, memory_->add(memory, world::Access::kRemoteWrite));
  regions_.push_back(
      {.bytes = memory.data(), .size = memory.size(), .rkey = rkey, .memory = std::move(fd)});
  return rdma::Region{.id = static_cast<rdma::RegionId>(regions_.size() - 1),
                      .bytes = memory.data(),
                      .size = memory.size()};
}

Result<rdma::Region> NetRdma::allocate(std::uint64_t size) {
  os::FileDescriptor fd(memfd_create("weft-region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) return os::system_error("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return os::system_error("ftruncate");
  // A peer that maps it must be able to rely on its size.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return os::system_error("sealing of shared memory");
  void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return os::system_error("mmap");
  auto region = keep_region({static_cast<std::byte*>(at), size}, std::move(fd));
  if (!region) munmap(at, size);
  return region;
}

Result<rdma::Region> NetRdma::add_region(std::span<std::byte> memory) {
  return keep_region(memory, {});
}

Result<void> NetRdma::remove_region(rdma::RegionId id) {
  if (id >= regions_.size() || !regions_[id].is_there) return no_such("region", id);
  OwnRegion& region = regions_[id];
  memory_->remove(region.rkey);
  if (region.memory.is_open()) munmap(region.bytes, region.size);
  region.memory.reset();
  region.is_there = false;
  return {};
}

transport::QpConfig NetRdma::config_for(const GroupState& group,
                                        std::span<const fabric::Ev> evs) const {
  transport::QpConfig config = plane_config(evs, peer_kind_of(options_.world.peers));
  config.mtu_dest = options_.world.mtu;
  config.mtu_dest_unlisted = net::kShmPayloadMax;  // the peer chooses by itself what it sends over
  config.mpr = config.mpr_dest = kMpr;
  config.wimm_max = config.wimm_dest_max = kImmediatesMax;
  config.send_queue_max = group.request.sends_max;
  config.receive_queue_max = group.request.receives_max;
  return config;
}

Result<rdma::Group> NetRdma::create_group(const rdma::GroupRequest& request) {
  const std::uint64_t sends = std::uint64_t{request.qps} * request.sends_max;
  const std::uint64_t receives = std::uint64_t{request.qps} * request.receives_max;
  // Each posted request has a place in the completion queue, so that it is never full.
  if (sends_reserved_ + sends > options_.sends_max ||
      receives_reserved_ + receives > options_.receives_max) {
    return Error{
        ErrorKind::kExhausted,
        fmt::format("a group of {} QPs asks for {} sends and {} receives; {} and {} are left",
                    request.qps, sends, receives, options_.sends_max - sends_reserved_,
                    options_.receives_max - receives_reserved_)};
  }
  if (request.qps == 0 || request.receives_posted > request.receives_max)
    return Error{ErrorKind::kInvalid, "a group has QPs, and posts no more receives than its bound"};
  GroupState state;
  state.request = request;
  state.group = {.id = static_cast<rdma::GroupId>(groups_.size()),
                 .first_qp = static_cast<rdma::QpIndex>(qps_.size()),
                 .qps = request.qps};
  groups_.push_back(state);
  sends_reserved_ += static_cast<std::uint32_t>(sends);
  receives_reserved_ += static_cast<std::uint32_t>(receives);
  for (std::uint32_t i = 0; i < request.qps; ++i) {
    const Psn first(prng_.below(Psn::kMask + 1));
    const auto qpn = endpoint_->create_qp(config_for(state, evs_), first);
    if (!qpn) {
      groups_.back().group.qps = i;
      (void)destroy_group(world_->now(), state.group.id);
      return qpn.error();
    }
    qps_.push_back({.qpn = *qpn, .first_psn = first});
    const std::uint32_t posted =
        post_receives(world_->now(), state.group.first_qp + i, request.receives_posted);
    WEFT_ASSERT(posted == request.receives_posted);  // the queue is empty and has that bound
  }
  return state.group;
}

Result<void> NetRdma::destroy_group(Time now, rdma::GroupId id) {
  if (id >= groups_.size() || !groups_[id].is_there) return no_such("group", id);
  GroupState& state = groups_[id];
  endpoint_->flush_answers(now);
  world_->pass();
  for (std::uint32_t i = 0; i < state.group.qps; ++i) {
    const transport::Qpn qpn = qps_[state.group.first_qp + i].qpn;
    WEFT_CHECK(endpoint_->destroy_qp(now, qpn));
    world_->end_session(qpn);
  }
  sends_reserved_ -= state.request.qps * state.request.sends_max;
  receives_reserved_ -= state.request.qps * state.request.receives_max;
  state.is_there = false;
  return {};
}

// --- two ends ----------------------------------------------------------------------------------

// What holds for every QP.
Hello NetRdma::hello() const {
  Hello out;
  out.ports = world_->addresses();
  out.secret_fingerprint = world_->secret_fingerprint();
  out.incarnation = world_->incarnation();
  out.host = os::host_identity(options_.world.network_namespace);
  out.shared_memory = world_->has_shared_memory();
  out.encapsulates = world_->srv6_form() == net::Srv6Form::kMrc;
  out.steered = world_->srv6_form() != net::Srv6Form::kAuto;
  out.labelled = world_->ev_mode() == net::EvMode::kPortAndLabel;
  out.whole_icrc = world_->icrc() == net::IcrcCover::kFull;
  out.as_nic = options_.world.peers == net::Peers::kMrc;
  return out;
}

std::vector<std::byte> NetRdma::describe(rdma::GroupId id) const {
  WEFT_ASSERT(id < groups_.size());
  const rdma::Group& group = groups_[id].group;
  std::vector<std::byte> out;
  out.reserve(group.qps * Hello::kSize);
  Hello one = hello();
  for (std::uint32_t i = 0; i < group.qps; ++i) {
    one.qpn = qps_[group.first_qp + i].qpn;
    one.first_psn = qps_[group.first_qp + i].first_psn.value();
    const auto bytes = one.to_bytes();
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

Result<void> NetRdma::connect(Time now, rdma::GroupId id, ConstBytes peer) {
  if (id >= groups_.size() || !groups_[id].is_there) return no_such("group", id);
  GroupState& state = groups_[id];
  if (state.is_connected)
    return Error{ErrorKind::kWrongState, fmt::format("group {} is connected already", id)};
  if (peer.size() != std::size_t{state.group.qps} * Hello::kSize) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("the peer describes its group in {} bytes; expected {} QPs of {} each, "
                    "as many as here",
                    peer.size(), state.group.qps, Hello::kSize)};
  }
  for (std::uint32_t i = 0; i < state.group.qps; ++i) {
    WEFT_TRY(const Hello other, Hello::from_bytes(std::span<const std::byte, Hello::kSize>(
                                    peer.subspan(i * Hello::kSize, Hello::kSize))));
    WEFT_CHECK(connect_qp(now, state, i, other));
  }
  state.is_connected = true;
  return {};
}

Result<void> NetRdma::connect_qp(Time now, GroupState& state, std::uint32_t index,
                                 const Hello& peer) {
  WEFT_CHECK(check_fit(hello(), peer));
  const transport::Qpn qpn = qps_[state.group.first_qp + index].qpn;
  if (index == 0 && peer.shared_memory) state.ring = world_->shared_memory_ev(peer.ports[0]);
  transport::QpConfig config = config_for(state, evs_);
  if (state.ring) {
    use_shared_memory(*state.ring, config);
  } else {
    config.mtu = world_->payload_to(peer.ports);
    WEFT_CHECK(check_mtu({.mtu = config.mtu}, 0));
  }
  WEFT_CHECK(endpoint_->configure_qp(qpn, config));
  WEFT_CHECK(
      world_->secure(qpn, {.incarnation = peer.incarnation, .qpn = peer.qpn, .ports = peer.ports}));
  transport::PeerInfo info;
  info.ports.fill(peer.ports[0]);
  std::copy(peer.ports.begin(), peer.ports.end(), info.ports.begin());
  info.qpn = peer.qpn;
  info.first_psn = Psn(peer.first_psn);
  return endpoint_->connect(now, qpn, info);
}

std::vector<std::byte> NetRdma::describe_region(rdma::RegionId id) const {
  WEFT_ASSERT(id < regions_.size());
  const OwnRegion& region = regions_[id];
  RegionWords words{.at = reinterpret_cast<std::uintptr_t>(region.bytes),
                    .size = region.size,
                    .rkey = region.rkey};
  struct stat about {};
  if (region.memory.is_open() && fstat(region.memory.get(), &about) == 0) {
    words.descriptor = region.memory.get();
    words.host = os::host_identity(options_.world.network_namespace);
    words.process = static_cast<std::uint64_t>(getpid());
    words.inode = about.st_ino;
  }
  return words.to_bytes();
}

Result<rdma::RemoteRegion> NetRdma::open_region(rdma::GroupId id, ConstBytes peer) {
  if (id >= groups_.size() || !groups_[id].is_connected) return no_such("connected group", id);
  WEFT_TRY(const RegionWords words, RegionWords::from_bytes(peer));
  return rdma::RemoteRegion{.at = words.at,
                            .size = words.size,
                            .rkey = words.rkey,
                            .mapped = map_memory(groups_[id], peer)};
}

// The peer's memory, found through its process; null where this process may not, or where what is
// there is not the sealed memory that was described. Only peers that share rings share memory.
const std::byte* NetRdma::map_memory(const GroupState& group, ConstBytes description) {
  const RegionWords words = RegionWords::from_bytes(description).value();
  if (!group.ring || words.descriptor < 0 || words.size == 0) return nullptr;
  if (words.host != os::host_identity(options_.world.network_namespace)) return nullptr;
  const std::string path = fmt::format("/proc/{}/fd/{}", words.process, words.descriptor);
  const os::FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!fd.is_open() || fstat(fd.get(), &about) != 0 || about.st_ino != words.inode) return nullptr;
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  const bool is_sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  if (!is_sealed || static_cast<std::uint64_t>(about.st_size) != words.size) return nullptr;
  void* const at = mmap(nullptr, words.size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  mappings_.push_back({.at = at, .size = words.size});
  return static_cast<const std::byte*>(at);
}

rdma::Limits NetRdma::limits() const {
  return {.write_bytes_max = kWriteBytesMax, .immediates_max = kImmediatesMax};
}

// --- work --------------------------------------------------------------------------------------

Time NetRdma::progress(Time limit) {
  world_->progress(limit);
  return world_->now();
}

void NetRdma::flush() {
  endpoint_->flush_answers(world_->now());
  world_->pass();
}

std::size_t NetRdma::post_writes(Time now, rdma::QpIndex qp, std::span<const rdma::Write> writes) {
  // What the poster stored is visible to a peer that maps the memory once it has the immediate.
  std::atomic_thread_fence(std::memory_order_release);
  constexpr std::size_t kBatch = 16;
  std::size_t taken = 0;
  while (taken < writes.size()) {
    std::array<transport::WriteRequest, kBatch> requests;
    std::array<const transport::WriteRequest*, kBatch> pointers{};
    const std::size_t count = std::min(kBatch, writes.size() - taken);
    for (std::size_t i = 0; i < count; ++i) {
      const rdma::Write& write = writes[taken + i];
      const OwnRegion& region = regions_[write.from];
      WEFT_ASSERT(region.is_there && write.from_offset <= region.size &&
                  write.size <= region.size - write.from_offset);
      requests[i] = {.id = std::uint64_t{qp} << 32 | write.id,
                     .local_at = reinterpret_cast<std::uintptr_t>(region.bytes) + write.from_offset,
                     .remote_at = write.to->at + write.to_offset,
                     .rkey = write.to->rkey,
                     .size = write.size,
                     .with_immediate = write.with_immediate,
                     .immediate = write.immediate};
      pointers[i] = &requests[i];
    }
    const std::size_t accepted =
        endpoint_->post_writes(now, qps_[qp].qpn, std::span(pointers).first(count));
    taken += accepted;
    if (accepted < count) break;
  }
  return taken;
}

std::uint32_t NetRdma::post_receives(Time now, rdma::QpIndex qp, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!endpoint_->post_receive(now, qps_[qp].qpn, std::uint64_t{qp} << 32)) return i;
  }
  return count;
}

std::size_t NetRdma::poll(std::span<rdma::Completion> out) {
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
          .immediate = one.immediate};
    }
    if (count < room) break;
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // the other half of post_writes()
  return taken;
}

bool NetRdma::poll_failure(rdma::Failure& out) {
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

void NetRdma::fail_group(Time now, rdma::GroupId id) {
  WEFT_ASSERT(id < groups_.size());
  const GroupState& state = groups_[id];
  if (!state.is_there) return;
  for (std::uint32_t i = 0; i < state.group.qps; ++i)
    (void)endpoint_->fail_qp(now, qps_[state.group.first_qp + i].qpn);  // or it has failed already
}

// --- paths -------------------------------------------------------------------------------------

rdma::GroupHealth NetRdma::health(rdma::GroupId id) const {
  WEFT_ASSERT(id < groups_.size());
  const GroupState& state = groups_[id];
  const auto view = endpoint_->view(qps_[state.group.first_qp].qpn);
  const auto planes = static_cast<std::uint8_t>(options_.world.planes.size());
  const auto mask = static_cast<std::uint8_t>((1u << planes) - 1);
  return {.planes = planes,
          .planes_left_out =
              state.ring ? std::uint8_t{0}
                         : static_cast<std::uint8_t>((view.ports_left_out & mask) | denied_planes_),
          .over_shared_memory = state.ring.has_value(),
          .window_bytes = view.cwnd_bytes};
}

bool NetRdma::change_plane(Time now, const PlaneChange& change) {
  if (change.plane >= options_.world.planes.size()) return false;
  endpoint_->set_port_admin(now, change.plane, !change.denied);
  const auto bit = static_cast<std::uint8_t>(1u << change.plane);
  denied_planes_ =
      static_cast<std::uint8_t>(change.denied ? denied_planes_ | bit : denied_planes_ & ~bit);
  return true;
}

CounterTable NetRdma::counters() const {
  CounterTable table = endpoint_->counters();
  const CounterTable net = world_->counters();
  table.insert(table.end(), net.begin(), net.end());
  return table;
}

}  // namespace weft::engine
