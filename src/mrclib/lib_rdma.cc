// LibRdma, set-up: the device, regions, groups and their connection.
#include "mrclib/lib_rdma.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "mrclib/description.h"
#include "mrclib/set_up.h"
#include "os/random_seed.h"
#include "os/system_error.h"

namespace weft::mrclib {
namespace {

// Immediates in flight on a QP, if the device permits so many.
constexpr std::uint16_t kImmediatesMax = 128;
constexpr std::uint8_t kMpr = 32;  // in units of 128 PSNs
constexpr std::uint32_t kWriteBytesMax = 1u << 30;
constexpr std::uint32_t kPlanesMax = 8;

// The names of those functions that the library lacks.
template <typename... F>
std::string missing_of(const F&... functions) {
  std::string out;
  const auto note = [&](const auto& function) {
    if (!function.is_present()) out += (out.empty() ? "" : ", ") + std::string(function.name());
  };
  (note(functions), ...);
  return out;
}

Result<void> check_functions(const Library& l) {
  const std::string missing = missing_of(
      l.mrc_query_device, l.mrc_create_context, l.mrc_destroy_context, l.mrc_create_comp_channel,
      l.mrc_get_comp_channel_fd, l.mrc_destroy_comp_channel, l.mrc_create_cq, l.mrc_poll_cq,
      l.mrc_destroy_cq, l.mrc_req_notify_cq, l.mrc_get_cq_event, l.mrc_ack_cq_events,
      l.mrc_create_qp, l.mrc_destroy_qp, l.mrc_modify_qp, l.mrc_get_qpn, l.mrc_post_recv,
      l.mrc_post_send, l.mrc_get_async_event, l.mrc_ack_async_event, l.ibv_get_device_list,
      l.ibv_free_device_list, l.ibv_get_device_name, l.ibv_open_device, l.ibv_close_device,
      l.ibv_query_device, l.ibv_query_port, l.ibv_query_gid, l.ibv_alloc_pd, l.ibv_dealloc_pd,
      l.ibv_reg_mr, l.ibv_dereg_mr);
  if (missing.empty()) return {};
  return Error{ErrorKind::kUnsupported,
               fmt::format("the library has no {}; expected a lib_mrc.so with all functions of "
                           "mrc.h, and libibverbs beside it",
                           missing)};
}

Result<void> set_nonblocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return os::system_error("fcntl");
  return {};
}

Error no_such(const char* what, std::uint32_t id) {
  return {ErrorKind::kNotFound, fmt::format("{} {} is not there", what, id)};
}

std::uint32_t bytes_of(ibv_mtu mtu) { return 128u << static_cast<unsigned>(mtu); }
ibv_mtu mtu_of(std::uint32_t bytes) { return static_cast<ibv_mtu>(std::countr_zero(bytes) - 7); }

}  // namespace

// --- the device ----------------------------------------------------------------------------------

LibRdma::LibRdma(const Library& library, const LibRdmaOptions& options)
    : library_(library),
      options_(options),
      prng_(os::random_seed()),
      waiter_({.spin = options.spin, .yield_after = Duration()}) {
  for (std::size_t i = 0; i + 1 < kBatch; ++i) {
    sends_[i].next = &sends_[i + 1];
    receives_[i].next = &receives_[i + 1];
  }
}

Result<std::unique_ptr<LibRdma>> LibRdma::open(const Library& library,
                                               const LibRdmaOptions& options) {
  WEFT_CHECK(check_functions(library));
  std::unique_ptr<LibRdma> out(new LibRdma(library, options));
  WEFT_CHECK(out->start());
  return out;
}

Result<void> LibRdma::start() {
  WEFT_CHECK(open_device());
  WEFT_CHECK(open_queues());
  find_planes();
  qps_.reserve(options_.qps_max);
  regions_.reserve(options_.regions_max);
  return {};
}

Result<void> LibRdma::open_device() {
  const FoundDevice found = find_device(library_, options_.device);
  if (found.verbs == nullptr) {
    return Error{
        ErrorKind::kNotFound,
        fmt::format("no MRC device{}{}; this host has {}; `ibv_devices` lists verbs devices",
                    options_.device.empty() ? "" : " ", options_.device,
                    found.names.empty() ? "no device at all" : "only " + found.names)};
  }
  verbs_ = found.verbs;
  mrc_device_attr device{};
  int supported = 0;
  if (library_.mrc_query_device(verbs_, &device, &supported) != 0)
    return os::system_error("mrc_query_device");
  context_ = library_.mrc_create_context(verbs_, nullptr);
  if (context_ == nullptr) {
    const int error = errno;
    Error out = os::system_error("mrc_create_context", error);
    if (error == EBUSY) out.kind = ErrorKind::kBusy;
    return out;
  }
  if (library_.ibv_query_gid(verbs_, kPort, options_.gid_index, &gid_) != 0) {
    return Error{ErrorKind::kNotFound,
                 fmt::format("port 1 of {} has no GID {}; expected one that `ibv_devinfo -v` shows",
                             library_.ibv_get_device_name(verbs_->device), options_.gid_index)};
  }
  ibv_port_attr port{};
  if (const int error = library_.ibv_query_port(verbs_, kPort, &port))
    return os::system_error("ibv_query_port", error);
  mtu_ = bytes_of(port.active_mtu);
  const std::uint8_t resolution = std::max<std::uint8_t>(device.mpr_attr.mpr_resolution, 1);
  mpr_resolution_ = resolution;
  mpr_ = std::min(kMpr, device.mpr_attr.max_mpr);
  mpr_ = static_cast<std::uint8_t>(mpr_ - mpr_ % resolution);
  limits_ = {.write_bytes_max = std::min(kWriteBytesMax, port.max_msg_sz),
             .immediates_max = std::min(
                 {kImmediatesMax, device.wimm_attr.max_wimm, device.wimm_attr.max_wimm_dest})};
  return {};
}

Result<void> LibRdma::open_queues() {
  pd_ = library_.ibv_alloc_pd(verbs_);
  if (pd_ == nullptr) return os::system_error("ibv_alloc_pd");
  if (const int error = library_.mrc_create_comp_channel(context_, &channel_))
    return os::system_error("mrc_create_comp_channel", error);
  if (library_.mrc_get_comp_channel_fd(channel_, &channel_fd_) != 0)
    return os::system_error("mrc_get_comp_channel_fd");
  WEFT_CHECK(set_nonblocking(channel_fd_));
  WEFT_CHECK(set_nonblocking(verbs_->async_fd));
  wake_ = os::FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.is_open()) return os::system_error("eventfd");
  const auto places = static_cast<int>(std::max(options_.sends_max + options_.receives_max, 1u));
  cq_ = library_.mrc_create_cq(context_, places, nullptr, channel_, 0);
  if (cq_ == nullptr) return os::system_error(fmt::format("mrc_create_cq of {} entries", places));
  return {};
}

// Finds the ports of the device, and which of them are down. Async events report later changes.
void LibRdma::find_planes() {
  ibv_device_attr device{};
  std::uint32_t ports = 1;
  mrc_ctl_device_attr ctl{};
  if (library_.mrc_ctl_query_device.is_present() &&
      library_.mrc_ctl_query_device(verbs_, &ctl) == 0 && ctl.phy_port_mask != 0) {
    ports = static_cast<std::uint32_t>(std::popcount(ctl.phy_port_mask));
  } else if (library_.ibv_query_device(verbs_, &device) == 0) {
    ports = device.phys_port_cnt;
  }
  planes_ = static_cast<std::uint8_t>(std::clamp(ports, 1u, kPlanesMax));
  for (std::uint8_t plane = 0; plane < planes_; ++plane) {
    ibv_port_attr port{};
    const auto number = static_cast<std::uint8_t>(plane + 1);
    if (library_.ibv_query_port(verbs_, number, &port) == 0 && port.state == IBV_PORT_DOWN)
      planes_down_ = static_cast<std::uint8_t>(planes_down_ | 1u << plane);
  }
}

LibRdma::~LibRdma() {
  for (std::uint8_t plane = 0; plane < planes_; ++plane) {
    if ((planes_denied_ >> plane & 1) != 0) (void)change_plane({}, {.plane = plane});
  }
  for (const OneQp& one : qps_) {
    if (one.qp != nullptr) library_.mrc_destroy_qp(one.qp);
  }
  if (cq_ != nullptr) library_.mrc_destroy_cq(cq_);
  if (channel_ != nullptr) library_.mrc_destroy_comp_channel(channel_);
  for (rdma::RegionId id = 0; id < regions_.size(); ++id) (void)remove_region(id);
  if (pd_ != nullptr) library_.ibv_dealloc_pd(pd_);
  if (context_ != nullptr) library_.mrc_destroy_context(context_);
  if (verbs_ != nullptr) library_.ibv_close_device(verbs_);
}

// --- regions -------------------------------------------------------------------------------------

Result<rdma::Region> LibRdma::allocate(std::uint64_t size) {
  if (size == 0) return Error{ErrorKind::kInvalid, "a region has at least one byte"};
  void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return os::system_error(fmt::format("memory of {} bytes", size));
  auto region = add_region({static_cast<std::byte*>(at), size});
  if (region) {
    regions_[region->id].mapping = at;
  } else {
    munmap(at, size);
  }
  return region;
}

Result<rdma::Region> LibRdma::add_region(std::span<std::byte> memory) {
  if (regions_there_ == options_.regions_max) {
    return Error{ErrorKind::kExhausted,
                 fmt::format("{} regions are registered; there may be no more", regions_there_)};
  }
  ibv_mr* const mr = library_.ibv_reg_mr(pd_, memory.data(), memory.size(), kRemoteWrite);
  if (mr == nullptr) return os::system_error(fmt::format("ibv_reg_mr of {} bytes", memory.size()));
  regions_.push_back({.mr = mr});
  ++regions_there_;
  return rdma::Region{.id = static_cast<rdma::RegionId>(regions_.size() - 1),
                      .bytes = memory.data(),
                      .size = memory.size()};
}

Result<void> LibRdma::remove_region(rdma::RegionId id) {
  if (id >= regions_.size() || regions_[id].mr == nullptr) return no_such("region", id);
  OwnRegion& region = regions_[id];
  const std::size_t size = region.mr->length;
  if (const int error = library_.ibv_dereg_mr(region.mr))
    return os::system_error("ibv_dereg_mr", error);
  if (region.mapping != nullptr) munmap(region.mapping, size);
  region = {};
  --regions_there_;
  return {};
}

// --- groups --------------------------------------------------------------------------------------

int LibRdma::modify(const OneQp& qp, const QpChange& change, const MrcChange& mrc) const {
  ibv_qp_attr verbs_attr = change.attr;  // mrc_modify_qp takes a non-const pointer
  mrc_qp_attr mrc_attr = mrc.attr;
  return library_.mrc_modify_qp(qp.qp, &verbs_attr, change.mask, &mrc_attr, mrc.mask);
}

Result<void> LibRdma::create_qp(const rdma::GroupRequest& request) {
  mrc_qp_init_attr init = qp_init(
      {.pd = pd_, .send_cq = cq_, .receive_cq = cq_},
      {.sends = std::max(request.sends_max, 1u), .receives = std::max(request.receives_max, 1u)});
  OneQp one{.qp = library_.mrc_create_qp(context_, &init)};
  if (one.qp == nullptr) {
    return os::system_error(fmt::format("mrc_create_qp with {} sends and {} receives",
                                        request.sends_max, request.receives_max));
  }
  one.sends_max = request.sends_max;
  one.receives_max = request.receives_max;
  one.first_psn = prng_.below(kMax24 + 1);
  qps_.push_back(one);
  ++qps_there_;
  if (library_.mrc_get_qpn(one.qp, &qps_.back().qpn) != 0) return os::system_error("mrc_get_qpn");
  if (const int error = modify(one, to_init(), {}))
    return os::system_error("mrc_modify_qp to INIT", error);
  const auto index = static_cast<rdma::QpIndex>(qps_.size() - 1);
  if (post_receives({}, index, request.receives_posted) != request.receives_posted)
    return Error{ErrorKind::kExhausted, "the library takes fewer receives than the QP's bound"};
  return {};
}

Result<rdma::Group> LibRdma::create_group(const rdma::GroupRequest& request) {
  const std::uint64_t sends = std::uint64_t{request.qps} * request.sends_max;
  const std::uint64_t receives = std::uint64_t{request.qps} * request.receives_max;
  if (request.qps == 0 || request.receives_posted > request.receives_max)
    return Error{ErrorKind::kInvalid, "a group has QPs, and posts no more receives than its bound"};
  // The CQ has an entry for each request that may be posted, so that it never overflows.
  if (request.qps > options_.qps_max - qps_there_ || sends > options_.sends_max - sends_reserved_ ||
      receives > options_.receives_max - receives_reserved_) {
    return Error{
        ErrorKind::kExhausted,
        fmt::format("a group of {} QPs asks for {} sends and {} receives; {} QPs, {} sends "
                    "and {} receives are left",
                    request.qps, sends, receives, options_.qps_max - qps_there_,
                    options_.sends_max - sends_reserved_,
                    options_.receives_max - receives_reserved_)};
  }
  const rdma::Group group{.id = static_cast<rdma::GroupId>(groups_.size()),
                          .first_qp = static_cast<rdma::QpIndex>(qps_.size()),
                          .qps = request.qps};
  groups_.push_back({.group = group, .request = request});
  sends_reserved_ += static_cast<std::uint32_t>(sends);
  receives_reserved_ += static_cast<std::uint32_t>(receives);
  for (std::uint32_t i = 0; i < request.qps; ++i) {
    const auto created = create_qp(request);
    if (created) continue;
    (void)destroy_group({}, group.id);
    return created.error();
  }
  return group;
}

Result<void> LibRdma::destroy_group(Time, rdma::GroupId id) {
  if (id >= groups_.size() || !groups_[id].is_there) return no_such("group", id);
  GroupState& state = groups_[id];
  const std::size_t end =
      std::min<std::size_t>(state.group.first_qp + state.group.qps, qps_.size());
  for (std::size_t i = state.group.first_qp; i < end; ++i) {
    OneQp& one = qps_[i];
    if (one.qp == nullptr) continue;
    if (const int error = library_.mrc_destroy_qp(one.qp))
      return os::system_error("mrc_destroy_qp", error);
    if (one.has_failed && !one.is_reported) --failures_untold_;
    one = {};
    --qps_there_;
  }
  sends_reserved_ -= state.request.qps * state.request.sends_max;
  receives_reserved_ -= state.request.qps * state.request.receives_max;
  state.is_there = false;
  return {};
}

// --- describing and connecting -----------------------------------------------------------------

std::vector<std::byte> LibRdma::describe(rdma::GroupId id) const {
  WEFT_ASSERT(id < groups_.size() && groups_[id].is_there);
  const rdma::Group& group = groups_[id].group;
  GroupDescription out;
  out.mtu = mtu_;
  out.immediates_max = static_cast<std::uint16_t>(limits_.immediates_max);
  out.mpr = mpr_;
  std::memcpy(out.gid.data(), gid_.raw, out.gid.size());
  for (std::uint32_t i = 0; i < group.qps; ++i) {
    const OneQp& one = qps_[group.first_qp + i];
    out.qps.push_back({.qpn = one.qpn, .first_psn = one.first_psn});
  }
  return out.to_bytes();
}

std::vector<std::byte> LibRdma::describe_region(rdma::RegionId id) const {
  WEFT_ASSERT(id < regions_.size() && regions_[id].mr != nullptr);
  const ibv_mr& mr = *regions_[id].mr;
  return RegionDescription{
      .at = reinterpret_cast<std::uintptr_t>(mr.addr), .size = mr.length, .rkey = mr.rkey}
      .to_bytes();
}

Result<void> LibRdma::connect(Time, rdma::GroupId id, ConstBytes bytes) {
  if (id >= groups_.size() || !groups_[id].is_there) return no_such("group", id);
  GroupState& state = groups_[id];
  if (state.is_connected)
    return Error{ErrorKind::kWrongState, fmt::format("group {} is connected already", id)};
  WEFT_TRY(const GroupDescription peer, GroupDescription::from_bytes(bytes));
  if (peer.qps.size() != state.group.qps) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("the peer's group has {} QPs; expected {}, as many "
                             "as here",
                             peer.qps.size(), state.group.qps)};
  }
  // Each end uses the smaller of its own bound and the peer's. If the peer gives no bound, our
  // library's default applies.
  MrcChange responder, requestor;
  responder.attr.wimm.max_wimm_dest = static_cast<std::uint16_t>(limits_.immediates_max);
  responder.attr.mpr.mpr_dest = mpr_;
  responder.mask = MRC_QP_MAX_WIMM_DEST | (mpr_ != 0 ? MRC_QP_MPR_DEST : 0);
  if (peer.immediates_max != 0) {
    requestor.attr.wimm.max_wimm =
        std::min(static_cast<std::uint16_t>(limits_.immediates_max), peer.immediates_max);
    requestor.mask |= MRC_QP_MAX_WIMM;
  }
  if (const std::uint8_t mpr = std::min(mpr_, peer.mpr); mpr >= mpr_resolution_) {
    requestor.attr.mpr.mpr = static_cast<std::uint8_t>(mpr - mpr % mpr_resolution_);
    requestor.mask |= MRC_QP_MPR;
  }
  QpPeer to{.mtu = mtu_of(std::min(mtu_, peer.mtu)), .gid_index = options_.gid_index};
  std::memcpy(to.gid.raw, peer.gid.data(), peer.gid.size());
  for (std::uint32_t i = 0; i < state.group.qps; ++i) {
    const OneQp& one = qps_[state.group.first_qp + i];
    to.qpn = peer.qps[i].qpn;
    to.psn = peer.qps[i].first_psn;
    if (const int error = modify(one, to_rtr(to), responder))
      return os::system_error("mrc_modify_qp to RTR, to the peer that was described", error);
    if (const int error = modify(one, to_rts(one.first_psn), requestor))
      return os::system_error("mrc_modify_qp to RTS", error);
  }
  state.is_connected = true;
  return {};
}

Result<rdma::RemoteRegion> LibRdma::open_region(rdma::GroupId id, ConstBytes peer) {
  if (id >= groups_.size() || !groups_[id].is_connected) return no_such("connected group", id);
  WEFT_TRY(const RegionDescription region, RegionDescription::from_bytes(peer));
  return rdma::RemoteRegion{.at = region.at, .size = region.size, .rkey = region.rkey};
}

}  // namespace weft::mrclib
