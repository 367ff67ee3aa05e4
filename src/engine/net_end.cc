#include "engine/net_end.h"

#include <fmt/core.h>

#include <algorithm>

#include "os/clock.h"
#include "os/host_identity.h"
#include "os/log.h"
#include "os/random_seed.h"
#include "transport/software_ends.h"

namespace weft::engine {
namespace {

constexpr std::uint32_t kMpr = 32;
constexpr std::uint32_t kBlocksPerQp = kMpr * 128 / 64 + 2;
constexpr std::uint32_t kSendQueue = 256;

// Over shared memory nothing is lost or reordered and the ring itself holds the sender back: large
// packets, few acknowledgements, and a window that is several rings.
constexpr std::uint32_t kShmMtu = net::kShmPayloadMax;
constexpr std::uint32_t kShmSackBytes = 1u << 20;
constexpr std::uint32_t kShmWindow = 8u << 20;
constexpr Duration kShmRtt = Duration::ms(1);

transport::QpConfig config_for(std::span<const fabric::Ev> evs) {
  transport::QpConfig config;
  config.mpr = config.mpr_dest = kMpr;
  config.evs = evs;
  config.ev_active = static_cast<std::uint32_t>(evs.size());
  config.nscc.rate = Rate::gbps(40);
  config.nscc.trimming = false;
  suit_process(config, transport::PeerKind::kSoftware);
  return config;
}

transport::QpConfig shared_memory_config(const fabric::Ev& ev) {
  transport::QpConfig config = config_for({&ev, 1});
  config.mtu = kShmMtu;
  config.sack_bytes = kShmSackBytes;
  config.nscc.enabled = false;
  config.nscc.base_rtt = kShmRtt;
  config.nscc.cwnd_bytes_max = config.nscc.cwnd_bytes_initial = kShmWindow;
  config.receive_budget = false;  // the ring itself holds the sender back
  return config;
}

}  // namespace

Result<std::unique_ptr<NetEnd>> NetEnd::open(const NetOptions& options) {
  std::unique_ptr<NetEnd> end(new NetEnd(options));
  end->prng_ = Prng(os::random_seed());
  WEFT_TRY(end->world_, net::UdpWorld::open(options.world));
  end->memory_ = std::make_unique<net::HostMemory>(options.qps_max, end->prng_.next());
  const auto ports = end->world_->addresses();
  transport::EndpointConfig config;
  config.port_count = end->world_->port_count();
  config.unlisted_ports = end->world_->shared_memory_port();
  // On the port of shared memory a process has the address that it has on plane 0.
  config.ports.fill(ports[0]);
  std::copy(ports.begin(), ports.end(), config.ports.begin());
  config.mtu = options.mtu != 0 ? options.mtu : options.world.mtu;
  config.burst = options.burst;
  config.qp_count_max = config.peer_count_max = options.qps_max;
  config.ev_count_max = options.qps_max * static_cast<std::uint32_t>(end->world_->evs().size());
  config.psn_block_count_max = options.qps_max * kBlocksPerQp;
  config.send_queue_max = kSendQueue;
  config.completion_queue_max = options.qps_max * kSendQueue;
  config.control_queue_max = 1024;
  config.answers_delay = transport::kAnswersDelay;
  transport::number_qps(config, end->world_->process(), end->prng_);
  config.seed = end->prng_.next();
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
    WEFT_CHECK(endpoint_->configure_qp(qpn, shared_memory_config(*ev)));
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
