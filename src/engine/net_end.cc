#include "engine/net_end.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/process_config.h"
#include "os/clock.h"
#include "os/host_identity.h"
#include "os/log.h"
#include "os/random_seed.h"

namespace weft::engine {
namespace {

constexpr std::uint32_t kMpr = 32;
constexpr std::uint32_t kBlocksPerQp = kMpr * 128 / 64 + 2;
constexpr std::uint32_t kSendQueue = 256;

transport::QpConfig config_for(std::span<const fabric::Ev> evs) {
  transport::QpConfig config = plane_config(evs, transport::PeerKind::kSoftware);
  config.mpr = config.mpr_dest = kMpr;
  return config;
}

}  // namespace

Result<std::unique_ptr<NetEnd>> NetEnd::open(const NetOptions& options) {
  std::unique_ptr<NetEnd> end(new NetEnd(options));
  end->prng_ = Prng(os::random_seed());
  WEFT_TRY(end->world_, net::UdpWorld::open(options.world));
  end->memory_ = std::make_unique<net::HostMemory>(options.qps_max, end->prng_.next());
  const auto ports = end->world_->addresses();
  const auto config = endpoint_config(
      *end->world_,
      {.mtu = options.mtu != 0 ? options.mtu : options.world.mtu,
       .burst = options.burst,
       .qps_max = options.qps_max,
       .evs_max = options.qps_max * static_cast<std::uint32_t>(end->world_->evs().size()),
       .psn_blocks_max = options.qps_max * kBlocksPerQp,
       .send_queue_max = kSendQueue,
       .completions_max = options.qps_max * kSendQueue},
      end->prng_);
  end->endpoint_ = std::make_unique<transport::Endpoint>(config, *end->memory_, nullptr);
  WEFT_CHECK(end->world_->attach(ports, *end->endpoint_));
  return end;
}

// What holds for every QP.
Hello NetEnd::hello() const {
  Hello out;
  out.mtu = options_.mtu;
  out.ports = world_->addresses();
  out.secret_fingerprint = world_->secret_fingerprint();
  out.incarnation = world_->incarnation();
  out.host = os::host_identity(options_.world.network_namespace);
  out.shared_memory = shares_memory();
  out.encapsulates = world_->srv6_form() == net::Srv6Form::kMrc;
  out.steered = world_->srv6_form() != net::Srv6Form::kAuto;
  out.labelled = world_->ev_mode() == net::EvMode::kPortAndLabel;
  out.whole_icrc = world_->icrc() == net::IcrcCover::kFull;
  return out;
}

Result<Hello> NetEnd::create_qp(std::span<std::byte> region) {
  const auto evs = world_->evs();
  const Psn first(prng_.below(Psn::kMask + 1));
  Hello out = hello();
  WEFT_TRY(out.qpn, endpoint_->create_qp(config_for(evs), first));
  WEFT_TRY(out.rkey, memory_->add(region, world::Access::kRemoteWrite));
  out.first_psn = first.value();
  out.region_at = reinterpret_cast<std::uintptr_t>(region.data());
  out.region_size = region.size();
  return out;
}

Result<Offer> NetEnd::offer(const Hello& peer) {
  WEFT_CHECK(check_fit(hello(), peer));
  Offer out;
  out.shared_memory = peer.shared_memory && world_->shared_memory_ev(peer.ports[0]).has_value();
  out.mtu = world_->payload_that_arrives(peer.ports);
  if (options_.mtu != 0) out.mtu = std::min(out.mtu, options_.mtu);
  return out;
}

Offer NetEnd::agree(const Offer& ours, const Offer& theirs) {
  return {.shared_memory = ours.shared_memory && theirs.shared_memory,
          .mtu = std::min(ours.mtu, theirs.mtu)};
}

Result<NetEnd::Carrier> NetEnd::connect(transport::Qpn qpn, const Hello& peer,
                                        const Offer& agreed) {
  Carrier carrier = Carrier::kPlanes;
  if (agreed.shared_memory) {
    const auto ev = world_->shared_memory_ev(peer.ports[0]);
    if (!ev) return Error{ErrorKind::kSystem, "the other end has gone"};
    transport::QpConfig config = config_for({});
    use_shared_memory(*ev, config);
    WEFT_CHECK(endpoint_->configure_qp(qpn, config));
    carrier = Carrier::kSharedMemory;
  } else {
    WEFT_CHECK(check_mtu(agreed, options_.mtu != 0 ? options_.mtu : peer.mtu));
    const auto evs = world_->evs();
    transport::QpConfig config = config_for(evs);
    config.mtu = agreed.mtu;
    WEFT_CHECK(endpoint_->configure_qp(qpn, config));
  }
  WEFT_CHECK(
      world_->secure(qpn, {.incarnation = peer.incarnation, .qpn = peer.qpn, .ports = peer.ports}));
  transport::PeerInfo info;
  info.ports.fill(peer.ports[0]);
  std::copy(peer.ports.begin(), peer.ports.end(), info.ports.begin());
  info.qpn = peer.qpn;
  info.first_psn = Psn(peer.first_psn);
  WEFT_CHECK(endpoint_->connect(os::clock_now(), qpn, info));
  os::log(os::LogLevel::kInfo, "QP {:#x} is connected to QP {:#x} of slot {} over {}", qpn,
          peer.qpn, peer.ports[0].process,
          carrier == Carrier::kSharedMemory ? "shared memory"
          : !shares_memory()                ? "the planes"
          : peer.shared_memory ? "the planes: the ends are on two hosts or of two users"
                               : "the planes: the other end takes no shared memory");
  return carrier;
}

}  // namespace weft::engine
