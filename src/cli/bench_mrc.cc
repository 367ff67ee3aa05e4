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
#include "os/waiter.h"
#include "settings/setting_table.h"

namespace weft::cli {
namespace {

// Passes the command line's settings to the device through environment variables. REQUIRES that
// this process has one thread.
void tell_device(const SettingFlags& flags) {
  for (const auto& [key, text] : flags.words) {
    // Addresses and interfaces must come from the same source: if either is given as a flag, the
    // environment variables of both are removed.
    if (key == "planes") unsetenv("WEFT_IFNAME");
    if (key == "interfaces") unsetenv("WEFT_PLANES");
    setenv(settings::find_setting(key)->environment, text.c_str(), 1);
  }
  if (!flags.config.empty()) setenv("WEFT_CONFIG", flags.config.c_str(), 1);
  // The device does not tell the other end that it uses shared memory; two ends of the engine tell
  // each other. The device would then send packets that are larger than the other end accepts.
  setenv("WEFT_SHM", "off", 1);
}

// A Library of the functions of lib_mrc.so that are linked into this program.
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
  explicit MrcEnd(std::span<const os::PlaneChoice> planes) {
    for (const os::PlaneChoice& plane : planes) planes_.push_back(plane.address);
  }
  Result<void> open(const BenchMemory& memory, std::uint32_t qps_max, std::uint32_t mtu_said);

  Result<Created> create_group(std::uint32_t qps) override;
  std::vector<std::byte> describe_landing() const override;
  Result<std::uint32_t> payload_that_arrives(ConstBytes peer_group) override;
  Result<BenchLink> connect(const rdma::Group& group, const PeerWords& peer) override;

  rdma::Rdma& rdma() override { return *rdma_; }
  rdma::RegionId source() const override { return source_.id; }
  void progress(Time) override {
    const bool news = rdma_->has_news();  // has_news() also drives the device
    now_ = os::clock_now();
    if (news) {
      came_at_ = now_;
    } else if (now_ - came_at_ > os::kYieldAfter) {
      sched_yield();
    }
  }
  void answer(Time until) override {
    const std::int64_t ns = (until - os::clock_now()).ns();
    if (ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    now_ = os::clock_now();
  }
  Time now() const override { return now_; }

  std::size_t plane_count() const override { return planes_.size(); }
  // mrc.h has no counters, so they are read from the device itself.
  CounterTable counters() override {
    const auto engine = device::SoftwareContext::of(rdma_->verbs())->engine();
    return engine ? (*engine)->counters() : CounterTable();
  }

 private:
  engine::Hello hello() const;

  bool as_nic_ = false, whole_icrc_ = false, labelled_ = false;  // the settings of the device
  std::vector<Ipv6> planes_;
  std::uint32_t mtu_said_ = 0;
  std::unique_ptr<mrclib::LibRdma> rdma_;
  rdma::Region source_{}, landing_{};
  Time now_ = os::clock_now(), came_at_ = now_;
};

Result<void> MrcEnd::open(const BenchMemory& memory, std::uint32_t qps_max,
                          std::uint32_t mtu_said) {
  mtu_said_ = mtu_said;
  WEFT_TRY(rdma_, mrclib::LibRdma::open(linked_library(), {.device = settings::kFirstDevice,
                                                           .gid_index = device::kGidIndex,
                                                           .qps_max = qps_max,
                                                           .sends_max = qps_max * kBenchDepthMax,
                                                           .receives_max = 0}));
  WEFT_TRY(source_, rdma_->add_region(memory.source));
  WEFT_TRY(landing_, rdma_->add_region(memory.landing));
  WEFT_TRY(const auto engine, device::SoftwareContext::of(rdma_->verbs())->engine());
  as_nic_ = engine->config().world.peers == wire::PeerKind::kNic;
  engine->with_lock([&](device::DeviceEngine::Parts& parts) {
    whole_icrc_ = parts.world.icrc() == wire::IcrcCover::kFull;
    labelled_ = parts.world.ev_carrier() == fabric::EvCarrier::kPortAndLabel;
    return 0;
  });
  return {};
}

// --- set-up ------------------------------------------------------------------------------------
// The other end may be an engine's, so descriptions are Hellos as in net_hello.h.

// The fields that are the same for every QP, except the ports.
engine::Hello MrcEnd::hello() const {
  engine::Hello out;
  out.mtu = mtu_said_;
  out.host = os::host_identity({});
  out.peers_are_nics = as_nic_;
  out.icrc_covers_payload = whole_icrc_;
  out.has_flow_labels = labelled_;
  for (const Ipv6& plane : planes_) out.ports.push_back(world::Address::of(plane));
  return out;
}

Result<BenchEnd::Created> MrcEnd::create_group(std::uint32_t qps) {
  WEFT_TRY(const rdma::Group group,
           rdma_->create_group({.qps = qps, .sends_max = kBenchDepthMax, .receives_max = 0}));
  WEFT_TRY(const auto ours, mrclib::GroupDescription::from_bytes(rdma_->describe(group.id)));
  Created out{.group = group};
  engine::Hello one = hello();
  for (const mrclib::GroupDescription::Qp& qp : ours.qps) {
    one.qpn = qp.qpn;
    one.first_psn = qp.first_psn;
    // The upper bits of a QP number identify its process.
    for (world::Address& port : one.ports) port.process = static_cast<std::uint16_t>(qp.qpn >> 16);
    const auto bytes = one.to_bytes();
    out.description.insert(out.description.end(), bytes.begin(), bytes.end());
  }
  return out;
}

std::vector<std::byte> MrcEnd::describe_landing() const {
  const auto region =
      mrclib::RegionDescription::from_bytes(rdma_->describe_region(landing_.id)).value();
  const auto bytes =
      engine::RegionHello{.at = region.at, .size = region.size, .rkey = region.rkey}.to_bytes();
  return {bytes.begin(), bytes.end()};
}

// The MTU of the port is what the device may send; the planes may carry less.
Result<std::uint32_t> MrcEnd::payload_that_arrives(ConstBytes peer_group) {
  if (peer_group.size() < engine::Hello::kSize)
    return Error{ErrorKind::kInvalid, "the peer describes no QP"};
  WEFT_TRY(const engine::Hello first,
           engine::Hello::from_bytes(peer_group.first<engine::Hello::kSize>()));
  WEFT_TRY(const auto engine, device::SoftwareContext::of(rdma_->verbs())->engine());
  const std::uint32_t fits = engine->with_lock([&](device::DeviceEngine::Parts& parts) {
    return parts.world.payload_that_arrives(first.ports);
  });
  return std::min(rdma_->mtu(), fits);
}

Result<BenchLink> MrcEnd::connect(const rdma::Group& group, const PeerWords& words) {
  BenchLink out{.group = group};
  mrclib::GroupDescription peer;
  for (std::size_t at = 0; at + engine::Hello::kSize <= words.group.size();
       at += engine::Hello::kSize) {
    WEFT_TRY(const engine::Hello one,
             engine::Hello::from_bytes(words.group.subspan(at).first<engine::Hello::kSize>()));
    WEFT_CHECK(engine::check_fit(hello(), one));
    peer.qps.push_back({.qpn = one.qpn, .first_psn = one.first_psn});
    if (at > 0) continue;
    out.peer_ports = one.ports;
    const std::uint32_t said = mtu_said_ != 0 ? mtu_said_ : one.mtu;
    out.mtu = said != 0 ? std::min(words.payload_max, said) : words.payload_max;
    WEFT_CHECK(engine::check_mtu(out.mtu, said));
    base::store_ipv6(Bytes(peer.gid), 0, one.ports[0].ip());
  }
  // The other bounds need no change: an engine's end has the same defaults as the device.
  peer.mtu = out.mtu;
  WEFT_CHECK(rdma_->connect(now_, group.id, peer.to_bytes()));
  WEFT_TRY(const auto region, engine::RegionHello::from_bytes(words.landing));
  const mrclib::RegionDescription landing{
      .at = region.at, .size = region.size, .rkey = region.rkey};
  WEFT_TRY(out.landing, rdma_->open_region(group.id, landing.to_bytes()));
  return out;
}

// Warns about controller settings that stop programs. If the controller's state cannot be read,
// this warns only: the device itself decides whether it continues.
void warn_of_controllers(const Bench& bench) {
  const auto word = controller_obstacles({.settings = bench.arguments.flags});
  if (!word) {
    os::log(os::LogLevel::kWarn, "what controllers said is not known: {}", word.error().message);
    return;
  }
  for (const ControllerObstacles::Obstacle& one : word->obstacles)
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
  if (bench.settings.peers == wire::PeerKind::kNic && a.host.empty() && !a.listen && !a.to_itself) {
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
  auto end = std::make_unique<MrcEnd>(bench.planes);
  WEFT_CHECK(end->open(memory, qps_max, bench.settings.mtu));
  return std::unique_ptr<BenchEnd>(std::move(end));
}

}  // namespace weft::cli
