#include "cli/bench_mrc.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cli/ctl_target.h"
#include "device/software_device.h"
#include "mrclib/description.h"
#include "mrclib/lib_rdma.h"
#include "os/clock.h"
#include "os/host_identity.h"
#include "os/log.h"
#include "settings/setting_table.h"

namespace weft::cli {
namespace {

// Writes in flight on a QP; measure_bandwidth posts at most that many.
constexpr std::uint32_t kDepth = 128;
// After that time without a completion, this thread yields its core to others.
constexpr Duration kYieldAfter = Duration::us(20);

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

const char* why(rdma::Status status) {
  if (status == rdma::Status::kRetryExceeded) return "the other end does not answer";
  if (status == rdma::Status::kRemoteAccess) return "the other end refused the address or the key";
  return "failed";
}

// The functions of lib_mrc.so that are linked into this program.
mrclib::Library linked_library() {
  mrclib::Library out;
#define WEFT_BIND(name) out.name.bind(reinterpret_cast<void*>(&::name));
  WEFT_MRC_FUNCTIONS(WEFT_BIND)
  WEFT_CTL_FUNCTIONS(WEFT_BIND)
#undef WEFT_BIND
#define WEFT_BIND(name, type) out.name.bind(reinterpret_cast<void*>(&::name));
  WEFT_VERBS_FUNCTIONS(WEFT_BIND)
#undef WEFT_BIND
  return out;
}

class MrcEnd final : public BenchEnd {
 public:
  MrcEnd(const BenchMemory& memory, std::span<const os::PlaneChoice> planes) : memory_(memory) {
    for (const os::PlaneChoice& plane : planes) planes_.push_back(plane.address);
  }
  Result<void> open(std::uint32_t qps_max, std::uint32_t mtu_said);

  Result<Created> create_qp() override;
  Result<engine::Offer> offer(const engine::Hello& peer) override;
  Result<engine::NetEnd::Carrier> connect(const BenchQp& qp, const engine::Offer& agreed) override;

  Result<void> post(const BenchQp& qp, const Write& write) override {
    const OneQp& one = qps_[qp.index];
    const rdma::Write request{.from = source_.id,
                              .from_offset = write.offset,
                              .to_offset = write.offset,
                              .to = &one.landing,
                              .size = write.size};
    if (rdma_->post_writes(now_, one.group.first_qp, {&request, 1}) == 1) return {};
    return Error{ErrorKind::kExhausted, "the queue of the QP is full"};
  }
  void progress(Time) override {
    const std::size_t polled = rdma_->poll(done_);
    now_ = os::clock_now();
    for (const rdma::Completion& one : std::span(done_).first(polled)) note(one.status);
    completed_ += polled;
    if (polled != 0) {
      came_at_ = now_;
    } else if (now_ - came_at_ > kYieldAfter) {
      // A QP with nothing posted fails without a completion.
      for (rdma::Failure failure; rdma_->poll_failure(failure);) note(failure.reason);
      sched_yield();
    }
  }
  Result<std::uint64_t> take() override {
    if (status_ != rdma::Status::kOk)
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
  CounterTable counters() override {
    const auto engine = device::SoftwareContext::of(rdma_->verbs())->engine();
    return engine ? (*engine)->counters() : CounterTable();
  }
  std::optional<std::int64_t> window_bytes(const BenchQp&) override { return std::nullopt; }
  world::PortMask planes_left_out(const BenchQp&) override { return 0; }

 private:
  struct OneQp {
    rdma::Group group{};
    rdma::RemoteRegion landing{};  // the peer's
  };
  Result<engine::Hello> hello() const;
  void note(rdma::Status status) {
    if (status_ == rdma::Status::kOk) status_ = status;
  }

  BenchMemory memory_;
  bool as_nic_ = false, whole_icrc_ = false, labelled_ = false;  // as configured in the device
  std::vector<Ipv6> planes_;
  std::uint32_t mtu_said_ = 0;
  std::unique_ptr<mrclib::LibRdma> rdma_;
  rdma::Region source_{}, landing_{};
  std::vector<OneQp> qps_;
  std::array<rdma::Completion, 128> done_{};  // as large as a batch of the engine
  rdma::Status status_ = rdma::Status::kOk;   // the first that was not kOk
  std::uint64_t completed_ = 0;               // completed, not yet taken
  Time now_ = os::clock_now(), came_at_ = now_;
};

Result<void> MrcEnd::open(std::uint32_t qps_max, std::uint32_t mtu_said) {
  mtu_said_ = mtu_said;
  WEFT_TRY(rdma_, mrclib::LibRdma::open(linked_library(), {.device = settings::kFirstDevice,
                                                           .gid_index = device::kGidIndex,
                                                           .qps_max = qps_max,
                                                           .sends_max = qps_max * kDepth,
                                                           .receives_max = 0}));
  WEFT_TRY(source_, rdma_->add_region(memory_.source));
  WEFT_TRY(landing_, rdma_->add_region(memory_.landing));
  WEFT_TRY(const auto engine, device::SoftwareContext::of(rdma_->verbs())->engine());
  as_nic_ = engine->config().world.peers == net::Peers::kMrc;
  engine->with_lock([&](device::DeviceEngine::Parts& parts) {
    whole_icrc_ = parts.world.icrc() == net::IcrcCover::kFull;
    labelled_ = parts.world.ev_mode() == net::EvMode::kPortAndLabel;
    return 0;
  });
  return {};
}

// --- set-up ------------------------------------------------------------------------------------

// The hello of the newest QP. A QP number contains the slot of its process. REQUIRES one QP.
Result<engine::Hello> MrcEnd::hello() const {
  WEFT_TRY(const auto group,
           mrclib::GroupDescription::from_bytes(rdma_->describe(qps_.back().group.id)));
  WEFT_TRY(const auto region,
           mrclib::RegionDescription::from_bytes(rdma_->describe_region(landing_.id)));
  const mrclib::GroupDescription::Qp& qp = group.qps[0];
  engine::Hello out;
  out.mtu = mtu_said_;
  out.qpn = qp.qpn;
  out.first_psn = qp.first_psn;
  out.rkey = region.rkey;
  out.region_at = region.at;
  out.region_size = region.size;
  out.host = os::host_identity({});
  out.as_nic = as_nic_;
  out.whole_icrc = whole_icrc_;
  out.labelled = labelled_;
  for (const Ipv6& plane : planes_)
    out.ports.push_back(world::Address::of(plane, static_cast<std::uint16_t>(qp.qpn >> 16)));
  return out;
}

Result<BenchEnd::Created> MrcEnd::create_qp() {
  WEFT_TRY(const rdma::Group group,
           rdma_->create_group({.qps = 1, .sends_max = kDepth, .receives_max = 0}));
  qps_.push_back({.group = group});
  WEFT_TRY(engine::Hello ours, hello());
  return Created{.index = static_cast<std::uint32_t>(qps_.size() - 1), .hello = std::move(ours)};
}

Result<engine::Offer> MrcEnd::offer(const engine::Hello& peer) {
  WEFT_TRY(const engine::Hello ours, hello());
  WEFT_CHECK(engine::check_fit(ours, peer));
  // The MTU of the port is what the device may send; the planes may carry less.
  WEFT_TRY(const auto engine, device::SoftwareContext::of(rdma_->verbs())->engine());
  const std::uint32_t fits = engine->with_lock([&](device::DeviceEngine::Parts& parts) {
    return parts.world.payload_that_arrives(peer.ports);
  });
  return engine::Offer{.shared_memory = false, .mtu = std::min(rdma_->mtu(), fits)};
}

// An end of the engine describes itself in a Hello; its bounds are the defaults of the device.
Result<engine::NetEnd::Carrier> MrcEnd::connect(const BenchQp& to, const engine::Offer& agreed) {
  WEFT_CHECK(engine::check_mtu(agreed, mtu_said_ != 0 ? mtu_said_ : to.peer.mtu));
  OneQp& one = qps_[to.index];
  mrclib::GroupDescription peer;
  peer.mtu = agreed.mtu;
  base::store_ipv6(Bytes(peer.gid), 0, to.peer.ports[0].ip());
  peer.qps = {{.qpn = to.peer.qpn, .first_psn = to.peer.first_psn}};
  WEFT_CHECK(rdma_->connect(now_, one.group.id, peer.to_bytes()));
  const mrclib::RegionDescription landing{
      .at = to.peer.region_at, .size = to.peer.region_size, .rkey = to.peer.rkey};
  WEFT_TRY(one.landing, rdma_->open_region(one.group.id, landing.to_bytes()));
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
