#include "engine/net_rdma.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "engine/process_config.h"
#include "os/clock.h"
#include "os/host_identity.h"
#include "os/log.h"
#include "os/random_seed.h"
#include "os/system_error.h"

namespace weft::engine {
namespace {

constexpr std::uint32_t kMpr = 32;
constexpr std::uint32_t kBlocksPerQp = kMpr * 128 / 64 + 2;
bool is_same_process(const Hello& a, const Hello& b) {
  return a.ports == b.ports && a.incarnation == b.incarnation && a.host == b.host &&
         a.shared_memory == b.shared_memory;
}

std::byte* bytes_of(std::uint64_t at) { return reinterpret_cast<std::byte*>(at); }

}  // namespace

// --- set-up ------------------------------------------------------------------------------------

NetRdma::NetRdma(const NetRdmaOptions& options)
    : EndpointRdma(nullptr, {.sends_max = options.sends_max, .receives_max = options.receives_max}),
      options_(options),
      prng_(os::random_seed()) {}

Result<std::unique_ptr<NetRdma>> NetRdma::open(const NetRdmaOptions& options) {
  std::unique_ptr<NetRdma> out(new NetRdma(options));
  WEFT_CHECK(out->start());
  return out;
}

NetRdma::~NetRdma() {
  world_.reset();
  for (const Mapping& mapping : mappings_) munmap(mapping.at, mapping.size);
  for (rdma::RegionId id = 0; id < backings_.size(); ++id)
    if (backings_[id].memory.is_open()) munmap(bytes_of(region(id).at), region(id).size);
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
  use_endpoint(*endpoint_, static_cast<std::uint8_t>(world_->addresses().size()));
  return world_->attach(world_->addresses(), *endpoint_);
}

Result<rdma::Region> NetRdma::keep_region(std::span<std::byte> memory, os::FileDescriptor fd) {
  WEFT_TRY(const std::uint32_t rkey, memory_->add(memory, world::Access::kRemoteWrite));
  backings_.push_back({.rkey = rkey, .memory = std::move(fd)});
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  return rdma::Region{
      .id = add_range(at, memory.size()), .bytes = memory.data(), .size = memory.size()};
}

Result<rdma::Region> NetRdma::allocate(std::uint64_t size) {
  if (size == 0) return Error{ErrorKind::kInvalid, "a region has at least one byte"};
  os::FileDescriptor fd(memfd_create("weft-region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) return os::system_error("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return os::system_error("ftruncate");
  // A peer that maps the memory must be able to rely on its size.
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
  WEFT_TRY(OwnRegion* const region, find_region(id));
  memory_->remove(backings_[id].rkey);
  if (backings_[id].memory.is_open()) munmap(bytes_of(region->at), region->size);
  backings_[id].memory.reset();
  region->is_there = false;
  return {};
}

transport::QpConfig NetRdma::config_for(std::span<const fabric::Ev> evs) const {
  transport::QpConfig config = plane_config(evs, options_.world.peers);
  config.mtu_dest = options_.world.mtu;
  // the peer may choose shared memory for what it sends
  config.mtu_dest_unlisted = net::kShmPayloadMax;
  config.mpr = config.mpr_dest = kMpr;
  return config;
}

Result<rdma::Group> NetRdma::create_group(const rdma::GroupRequest& request) {
  WEFT_TRY(const rdma::Group group, create_qps(world_->now(), request, config_for(evs_), prng_));
  carriers_.resize(group.id + 1);
  return group;
}

Result<void> NetRdma::destroy_group(Time now, rdma::GroupId id) {
  WEFT_TRY(GroupState* const state, find_group(id));
  endpoint_->flush_answers(now);
  world_->pass();
  for (std::uint32_t i = 0; i < state->group.qps; ++i)
    world_->end_session(qp(state->group.first_qp + i).qpn);
  std::erase_if(mappings_, [id](const Mapping& mapping) {
    if (mapping.group == id) munmap(mapping.at, mapping.size);
    return mapping.group == id;
  });
  return destroy_qps(now, *state);
}

// --- describing and connecting -----------------------------------------------------------------

// The fields that are the same for every QP.
Hello NetRdma::hello() const {
  Hello out;
  out.mtu = options_.mtu;
  out.ports = world_->addresses();
  out.secret_fingerprint = world_->secret_fingerprint();
  out.incarnation = world_->incarnation();
  out.host = os::host_identity(options_.world.network_namespace);
  out.shared_memory = world_->has_shared_memory();
  out.uses_mrc_srv6 = world_->srv6_form() == fabric::Srv6Form::kMrc;
  out.uses_usids = world_->srv6_form() != fabric::Srv6Form::kAuto;
  out.has_flow_labels = world_->ev_carrier() == fabric::EvCarrier::kPortAndLabel;
  out.icrc_covers_payload = world_->icrc() == wire::IcrcCover::kFull;
  out.peers_are_nics = options_.world.peers == wire::PeerKind::kNic;
  return out;
}

std::vector<std::byte> NetRdma::describe(rdma::GroupId id) const {
  const rdma::Group& group = this->group(id).group;
  std::vector<std::byte> out;
  out.reserve(group.qps * Hello::kSize);
  Hello one = hello();
  for (std::uint32_t i = 0; i < group.qps; ++i) {
    one.qpn = qp(group.first_qp + i).qpn;
    one.first_psn = qp(group.first_qp + i).first_psn.value();
    const auto bytes = one.to_bytes();
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

Result<std::uint32_t> NetRdma::payload_that_arrives(ConstBytes peer) const {
  if (peer.size() < Hello::kSize) return Error{ErrorKind::kInvalid, "the peer describes no QP"};
  WEFT_TRY(const Hello first, Hello::from_bytes(peer.first<Hello::kSize>()));
  return world_->payload_that_arrives(first.ports);
}

Result<void> NetRdma::connect(Time now, rdma::GroupId id, ConstBytes peer) {
  WEFT_TRY(GroupState* const state, find_group(id));
  if (state->is_connected)
    return Error{ErrorKind::kWrongState, fmt::format("group {} is connected already", id)};
  if (peer.size() != std::size_t{state->group.qps} * Hello::kSize) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("the peer describes its group in {} bytes; expected {} QPs of {} each, "
                    "as many as here",
                    peer.size(), state->group.qps, Hello::kSize)};
  }
  // All is read before any QP changes.
  std::vector<Hello> others;
  for (std::uint32_t i = 0; i < state->group.qps; ++i) {
    WEFT_TRY(Hello other, Hello::from_bytes(std::span<const std::byte, Hello::kSize>(
                              peer.subspan(i * Hello::kSize, Hello::kSize))));
    WEFT_CHECK(check_fit(hello(), other));
    if (i > 0 && !is_same_process(other, others.front()))
      return Error{ErrorKind::kInvalid, "the peer's group has QPs of several processes"};
    others.push_back(std::move(other));
  }
  WEFT_CHECK(choose_carrier(*state, others.front()));
  for (std::uint32_t i = 0; i < state->group.qps; ++i)
    WEFT_CHECK(connect_qp(now, *state, qp(state->group.first_qp + i).qpn, others[i]));
  state->is_connected = true;
  return {};
}

// Chooses shared memory or the planes for the packets of the group. Each end chooses for itself.
Result<void> NetRdma::choose_carrier(GroupState& state, const Hello& peer) {
  Carrier& carrier = carriers_[state.group.id];
  if (peer.shared_memory) carrier.ring = world_->shared_memory_ev(peer.ports[0]);
  state.over_shared_memory = carrier.ring.has_value();
  if (!carrier.ring) {
    const std::uint32_t fits = std::min(world_->payload_to(peer.ports), payload_max_);
    const std::uint32_t mtu_set = options_.mtu != 0 ? options_.mtu : peer.mtu;
    carrier.mtu = mtu_set != 0 ? std::min(fits, mtu_set) : fits;
    WEFT_CHECK(check_mtu(carrier.mtu, mtu_set));
  }
  return {};
}

Result<void> NetRdma::connect_qp(Time now, const GroupState& state, transport::Qpn qpn,
                                 const Hello& peer) {
  const Carrier& carrier = carriers_[state.group.id];
  transport::QpConfig config = config_for(evs_);
  bound_queues(state.request, config);
  config.mtu = carrier.mtu;
  if (carrier.ring) use_shared_memory(*carrier.ring, config);
  WEFT_CHECK(endpoint_->configure_qp(qpn, config));
  WEFT_CHECK(
      world_->secure(qpn, {.incarnation = peer.incarnation, .qpn = peer.qpn, .ports = peer.ports}));
  transport::PeerInfo info;
  info.ports.fill(peer.ports[0]);
  std::copy(peer.ports.begin(), peer.ports.end(), info.ports.begin());
  info.qpn = peer.qpn;
  info.first_psn = Psn(peer.first_psn);
  WEFT_CHECK(endpoint_->connect(now, qpn, info));
  os::log(os::LogLevel::kInfo, "QP {:#x} is connected to QP {:#x} of slot {} over {}", qpn,
          peer.qpn, peer.ports[0].process,
          carrier.ring                   ? "shared memory"
          : !world_->has_shared_memory() ? "the planes"
          : peer.shared_memory           ? "the planes: the ends are on two hosts or of two users"
                                         : "the planes: the other end takes no shared memory");
  return {};
}

std::vector<std::byte> NetRdma::describe_region(rdma::RegionId id) const {
  const OwnRegion& region = this->region(id);
  const Backing& backing = backings_[id];
  RegionHello hello{.at = region.at, .size = region.size, .rkey = backing.rkey};
  struct stat about {};
  if (backing.memory.is_open() && fstat(backing.memory.get(), &about) == 0) {
    hello.descriptor = backing.memory.get();
    hello.host = os::host_identity(options_.world.network_namespace);
    hello.process = static_cast<std::uint64_t>(getpid());
    hello.inode = about.st_ino;
  }
  const auto bytes = hello.to_bytes();
  return {bytes.begin(), bytes.end()};
}

Result<rdma::RemoteRegion> NetRdma::open_region(rdma::GroupId id, ConstBytes peer) {
  WEFT_TRY(const GroupState* const state, find_group(id));
  if (!state->is_connected)
    return Error{ErrorKind::kWrongState, fmt::format("group {} is not connected", id)};
  WEFT_TRY(const RegionHello region, RegionHello::from_bytes(peer));
  return rdma::RemoteRegion{.at = region.at,
                            .size = region.size,
                            .rkey = region.rkey,
                            .mapped = map_memory(*state, region)};
}

// Maps the peer's memory, found through the peer's process. Null if this process may not map it, or
// if the file is not the sealed memory that the peer described. Memory is shared only with peers
// that use shared memory rings.
const std::byte* NetRdma::map_memory(const GroupState& group, const RegionHello& region) {
  if (!group.over_shared_memory || region.descriptor < 0 || region.size == 0) return nullptr;
  if (region.host != os::host_identity(options_.world.network_namespace)) return nullptr;
  const std::string path = fmt::format("/proc/{}/fd/{}", region.process, region.descriptor);
  const os::FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!fd.is_open() || fstat(fd.get(), &about) != 0 || about.st_ino != region.inode) return nullptr;
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  const bool is_sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  if (!is_sealed || static_cast<std::uint64_t>(about.st_size) != region.size) return nullptr;
  void* const at = mmap(nullptr, region.size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  mappings_.push_back({.group = group.group.id, .at = at, .size = region.size});
  return static_cast<const std::byte*>(at);
}

// --- work --------------------------------------------------------------------------------------

Time NetRdma::progress(Time limit) {
  // Waits for nothing while there is something to poll: a failed group, or what set-up received.
  world_->progress(endpoint_->has_news() ? Time() : limit);
  return world_->now();
}

void NetRdma::flush() {
  endpoint_->flush_answers(world_->now());
  world_->pass();
}

CounterTable NetRdma::counters() const {
  CounterTable table = EndpointRdma::counters();
  const CounterTable net = world_->counters();
  table.insert(table.end(), net.begin(), net.end());
  return table;
}

}  // namespace weft::engine
