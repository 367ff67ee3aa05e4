#include "cli/bench_mrc.h"

#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <mrc/mrc.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cli/ctl_target.h"
#include "device/qp_attributes.h"
#include "device/software_device.h"
#include "os/clock.h"
#include "os/host_identity.h"
#include "os/log.h"
#include "os/random_seed.h"
#include "settings/setting_table.h"

namespace weft::cli {
namespace {

// Writes in flight on a QP; measure_bandwidth posts at most that many.
constexpr std::uint32_t kDepth = 128;
// After that time without a completion, this thread yields its core to others.
constexpr Duration kYieldAfter = Duration::us(20);

Error refused(const char* what, int error) {
  return {ErrorKind::kSystem, fmt::format("{}: {}", what, std::strerror(error))};
}

// Passes the command line to the device through the environment. REQUIRES that there is one thread.
void tell_device(const SettingFlags& flags) {
  for (const auto& [key, text] : flags.words) {
    // Addresses and interfaces must come from the same source: a flag replaces the variables of
    // both.
    if (key == "planes") unsetenv("WEFT_IFNAME");
    if (key == "interfaces") unsetenv("WEFT_PLANES");
    setenv(settings::find_setting(key)->environment, text.c_str(), 1);
  }
  if (!flags.config.empty()) setenv("WEFT_CONFIG", flags.config.c_str(), 1);
  // With shared memory, the device would send larger packets than an engine's end accepts. An
  // engine's end agrees on shared memory out of band, which the device does not do.
  setenv("WEFT_SHM", "off", 1);
}

const char* why(ibv_wc_status status) {
  if (status == IBV_WC_RETRY_EXC_ERR) return "the other end does not answer";
  if (status == IBV_WC_REM_ACCESS_ERR) return "the other end refused the address or the key";
  return "failed";
}

class MrcEnd final : public BenchEnd {
 public:
  MrcEnd(const BenchMemory& memory, std::span<const os::PlaneChoice> planes) : memory_(memory) {
    for (const os::PlaneChoice& plane : planes) planes_.push_back(plane.address);
    work_.sg_list = &piece_;
    work_.num_sge = 1;
    work_.opcode = IBV_WR_RDMA_WRITE;
    work_.send_flags = IBV_SEND_SIGNALED;
  }
  ~MrcEnd() override;
  Result<void> open(std::uint32_t qps_max, std::uint32_t mtu_said);

  Result<Created> create_qp() override;
  Result<engine::Offer> offer(const engine::Hello& peer) override;
  Result<engine::NetEnd::Carrier> connect(const BenchQp& qp, const engine::Offer& agreed) override;

  Result<void> post(const BenchQp& qp, const Write& write) override {
    piece_.addr = reinterpret_cast<std::uintptr_t>(memory_.source.data()) + write.offset;
    piece_.length = write.size;
    work_.wr.rdma.remote_addr = qp.peer.region_at + write.offset;
    work_.wr.rdma.rkey = qp.peer.rkey;
    ibv_send_wr* bad = nullptr;
    const int error = mrc_post_send(qps_[qp.index].qp, &work_, &bad);
    if (error == 0) return {};
    if (error == ENOMEM) return Error{ErrorKind::kExhausted, "the queue of the QP is full"};
    return refused("mrc_post_send", error);
  }
  void progress(Time) override {
    const int polled = mrc_poll_cq(cq_, static_cast<int>(done_.size()), done_.data());
    now_ = os::clock_now();
    if (polled < 0 && error_ == 0) error_ = errno;
    for (int i = 0; i < polled; ++i) {
      const ibv_wc_status status = done_[static_cast<std::size_t>(i)].status;
      if (status != IBV_WC_SUCCESS && status_ == IBV_WC_SUCCESS) status_ = status;
      ++completed_;
    }
    if (polled != 0) {
      came_at_ = now_;
    } else if (now_ - came_at_ > kYieldAfter) {
      sched_yield();
    }
  }
  Result<std::uint64_t> take() override {
    if (error_ != 0) return refused("mrc_poll_cq", error_);
    if (status_ != IBV_WC_SUCCESS)
      return Error{ErrorKind::kSystem, fmt::format("a write failed: {}", why(status_))};
    return std::exchange(completed_, 0);
  }
  void answer(Time until) override {
    const std::int64_t ns = (until - os::clock_now()).ns();
    if (ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    now_ = os::clock_now();
  }
  Time now() const override { return now_; }

  std::size_t plane_count() const override { return planes_.size(); }
  // mrc.h has no counters, so they are read from the device.
  CounterTable counters() override {
    const auto engine = device::SoftwareContext::of(verbs_)->engine();
    return engine ? (*engine)->counters() : CounterTable();
  }
  std::optional<std::int64_t> window_bytes(const BenchQp&) override { return std::nullopt; }
  world::PortMask planes_left_out(const BenchQp&) override { return 0; }

 private:
  struct OneQp {
    mrc_qp* qp = nullptr;
    std::uint32_t qpn = 0, first_psn = 0;
  };
  engine::Hello hello() const;

  BenchMemory memory_;
  bool as_nic_ = false, whole_icrc_ = false, labelled_ = false;  // as configured in the device
  std::vector<Ipv6> planes_;
  std::uint32_t mtu_said_ = 0, mtu_ = 0;
  ibv_context* verbs_ = nullptr;
  mrc_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr *source_ = nullptr, *landing_ = nullptr;
  mrc_cq* cq_ = nullptr;
  std::vector<OneQp> qps_;
  ibv_send_wr work_{};
  ibv_sge piece_{};
  std::array<ibv_wc, 128> done_{};  // as large as a batch of the engine
  int error_ = 0;
  ibv_wc_status status_ = IBV_WC_SUCCESS;  // the first status that was not success
  std::uint64_t completed_ = 0;            // completed, not yet taken
  Time now_ = os::clock_now(), came_at_ = now_;
  Prng prng_{os::random_seed()};
};

Result<void> MrcEnd::open(std::uint32_t qps_max, std::uint32_t mtu_said) {
  mtu_said_ = mtu_said;
  ibv_device** const list = ibv_get_device_list(nullptr);
  if (list == nullptr) return refused("ibv_get_device_list", errno);
  for (ibv_device** device = list; *device != nullptr && verbs_ == nullptr; ++device) {
    if (std::strcmp(ibv_get_device_name(*device), "weft0") == 0) verbs_ = ibv_open_device(*device);
  }
  ibv_free_device_list(list);
  if (verbs_ == nullptr) return Error{ErrorKind::kSystem, "the device weft0 does not open"};
  context_ = mrc_create_context(verbs_, nullptr);
  if (context_ == nullptr) return refused("mrc_create_context", errno);
  pd_ = ibv_alloc_pd(verbs_);
  if (pd_ == nullptr) return refused("ibv_alloc_pd", errno);
  source_ = ibv_reg_mr(pd_, memory_.source.data(), memory_.source.size(), 0);
  landing_ = ibv_reg_mr(pd_, memory_.landing.data(), memory_.landing.size(),
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (source_ == nullptr || landing_ == nullptr) return refused("ibv_reg_mr", errno);
  piece_.lkey = source_->lkey;
  cq_ = mrc_create_cq(context_, static_cast<int>(qps_max * kDepth), nullptr, nullptr, 0);
  if (cq_ == nullptr) return refused("mrc_create_cq", errno);
  ibv_port_attr port{};
  if (const int error = ibv_query_port(verbs_, 1, &port)) return refused("ibv_query_port", error);
  mtu_ = 128u << port.active_mtu;
  WEFT_TRY(const auto engine, device::SoftwareContext::of(verbs_)->engine());
  as_nic_ = engine->config().world.peers == net::Peers::kMrc;
  engine->with_lock([&](device::DeviceEngine::Parts& parts) {
    whole_icrc_ = parts.world.icrc() == net::IcrcCover::kFull;
    labelled_ = parts.world.ev_mode() == net::EvMode::kPortAndLabel;
    return 0;
  });
  return {};
}

MrcEnd::~MrcEnd() {
  for (const OneQp& one : qps_) mrc_destroy_qp(one.qp);
  if (cq_ != nullptr) mrc_destroy_cq(cq_);
  for (ibv_mr* const region : {source_, landing_}) {
    if (region != nullptr) ibv_dereg_mr(region);
  }
  if (pd_ != nullptr) ibv_dealloc_pd(pd_);
  if (context_ != nullptr) mrc_destroy_context(context_);
  if (verbs_ != nullptr) ibv_close_device(verbs_);
}

// --- set-up ------------------------------------------------------------------------------------

// The hello of the newest QP. A QP number contains the slot of its process. REQUIRES one QP.
engine::Hello MrcEnd::hello() const {
  const OneQp& one = qps_.back();
  engine::Hello out;
  out.mtu = mtu_said_;
  out.qpn = one.qpn;
  out.first_psn = one.first_psn;
  out.rkey = landing_->rkey;
  out.region_at = reinterpret_cast<std::uintptr_t>(memory_.landing.data());
  out.region_size = memory_.landing.size();
  out.host = os::host_identity({});
  out.as_nic = as_nic_;
  out.whole_icrc = whole_icrc_;
  out.labelled = labelled_;
  for (const Ipv6& plane : planes_)
    out.ports.push_back(world::Address::of(plane, static_cast<std::uint16_t>(one.qpn >> 16)));
  return out;
}

Result<BenchEnd::Created> MrcEnd::create_qp() {
  mrc_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.pd = pd_;
  init.cap.max_send_wr = kDepth;
  init.cap.max_recv_wr = 1;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  mrc_qp* const qp = mrc_create_qp(context_, &init);
  if (qp == nullptr) return refused("mrc_create_qp", errno);
  qps_.push_back({.qp = qp, .qpn = 0, .first_psn = prng_.below(Psn::kMask + 1)});
  if (mrc_get_qpn(qp, &qps_.back().qpn) != 0) return refused("mrc_get_qpn", errno);
  return Created{.index = static_cast<std::uint32_t>(qps_.size() - 1), .hello = hello()};
}

Result<engine::Offer> MrcEnd::offer(const engine::Hello& peer) {
  WEFT_CHECK(engine::check_fit(hello(), peer));
  // The MTU of the port is what the device may send; the planes may carry less.
  WEFT_TRY(const auto engine, device::SoftwareContext::of(verbs_)->engine());
  const std::uint32_t fits = engine->with_lock([&](device::DeviceEngine::Parts& parts) {
    return parts.world.payload_that_arrives(peer.ports);
  });
  return engine::Offer{.shared_memory = false, .mtu = std::min(mtu_, fits)};
}

Result<engine::NetEnd::Carrier> MrcEnd::connect(const BenchQp& to, const engine::Offer& agreed) {
  WEFT_CHECK(engine::check_mtu(agreed, mtu_said_ != 0 ? mtu_said_ : to.peer.mtu));
  const OneQp& one = qps_[to.index];
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  if (const int error = mrc_modify_qp(
          one.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
          nullptr, 0))
    return refused("mrc_modify_qp to INIT", error);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = device::mtu_of(agreed.mtu);
  attr.ah_attr.is_global = 1;
  std::array<std::byte, 16> gid;
  base::store_ipv6(Bytes(gid), 0, to.peer.ports[0].ip());
  std::memcpy(attr.ah_attr.grh.dgid.raw, gid.data(), gid.size());
  attr.ah_attr.grh.sgid_index = device::kGidIndex;
  attr.ah_attr.port_num = 1;
  attr.dest_qp_num = to.peer.qpn;
  attr.rq_psn = to.peer.first_psn;
  if (const int error = mrc_modify_qp(
          one.qp, &attr,
          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, nullptr, 0))
    return refused("mrc_modify_qp to RTR", error);
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = one.first_psn;
  if (const int error = mrc_modify_qp(one.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, nullptr, 0))
    return refused("mrc_modify_qp to RTS", error);
  return engine::NetEnd::Carrier::kPlanes;
}

// If the state of the controller cannot be read, the device decides whether it continues.
void warn_of_controllers(const Bench& bench) {
  const auto word = controller_word({.settings = bench.arguments.flags});
  if (!word) {
    os::log(os::LogLevel::kWarn, "what controllers said is not known: {}", word.error().message);
    return;
  }
  for (const ControllerWord::Hindrance& one : word->hindrances)
    os::log(os::LogLevel::kWarn, "{}: {}; `{}` mends it", one.name, one.what, one.mend);
  for (std::size_t port = 1; port <= bench.planes.size(); ++port) {
    if ((word->ports_disabled >> port & 1) == 0) continue;
    os::log(os::LogLevel::kWarn, "port {} ({}) is disabled; `weft ctl port {} --enable{}` mends it",
            port, os::text_of(bench.planes[port - 1].address), port,
            device_flags(bench.arguments.flags));
  }
}

}  // namespace

Result<void> check_mrc(const Bench& bench) {
  const BenchArguments& a = bench.arguments;
  if (bench.settings.peers == net::Peers::kMrc && a.host.empty() && !a.listen && !a.to_itself) {
    return Error{
        ErrorKind::kInvalid,
        "with peers = mrc one process at a time has these addresses, so not both ends; run "
        "`weft bench write --api mrc --listen` on another host, and here its name"};
  }
  const auto no = [](const char* what, const char* why_not) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("{} cannot be had with --api mrc: {}", what, why_not)};
  };
  if (!bench.arguments.fabric.empty())
    return no("--fabric", "a device steers by UDP ports, not by uSIDs");
  if (bench.arguments.receive_buffer != 0)
    return no("--receive-buffer", "a device takes what there is");
  if (!bench.settings.secret_file.empty())
    return no("a job secret",
              "an end of the engine would not know whose it is; leave --secret-file out");
  if (bench.settings.shared_memory == SharedMemory::kMust)
    return no("--shm", "the ends agree on the planes; leave it out");
  return {};
}

Result<std::unique_ptr<BenchEnd>> open_mrc_end(const Bench& bench, std::uint32_t qps_max,
                                               const BenchMemory& memory) {
  warn_of_controllers(bench);
  tell_device(bench.arguments.flags);
  auto end = std::make_unique<MrcEnd>(memory, bench.planes);
  WEFT_CHECK(end->open(qps_max, bench.settings.mtu));
  return std::unique_ptr<BenchEnd>(std::move(end));
}

}  // namespace weft::cli
