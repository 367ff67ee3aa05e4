#include "cli/net_end.h"

#include <fmt/core.h>

#include <algorithm>

#include "net/address.h"
#include "net/clock.h"
#include "net/host_identity.h"
#include "net/interfaces.h"
#include "net/log.h"
#include "net/random_seed.h"
#include "transport/software_ends.h"

namespace weft::cli {
namespace {

constexpr std::uint64_t kMagic = 0x7765'6674'0000'0005;  // "weft", version 5
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
  suit_software(config);
  return config;
}

transport::QpConfig shared_memory_config(const fabric::Ev& ev) {
  transport::QpConfig config = config_for({&ev, 1});
  config.mtu = kShmMtu;
  config.sack_bytes = kShmSackBytes;
  config.nscc.enabled = false;
  config.nscc.base_rtt = kShmRtt;
  config.nscc.cwnd_bytes_max = config.nscc.cwnd_bytes_initial = kShmWindow;
  config.budget_unit_bytes = 0;  // the ring says what there is room for
  return config;
}

}  // namespace

Result<void> check_mtu(const Offer& agreed, std::uint32_t said) {
  if (agreed.mtu != 1024 && agreed.mtu != 2048 && agreed.mtu != 4096) {
    return Error{
        ErrorKind::kInvalid,
        "not even a payload of 1024 fits the planes between the two ends; raise their MTU, "
        "`weft doctor` says which"};
  }
  if (said != 0 && agreed.mtu < said) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("--mtu {} does not fit the planes between the two ends, {} does; leave "
                    "--mtu out, or raise their MTU (`weft doctor` says which)",
                    said, agreed.mtu)};
  }
  return {};
}

std::array<std::byte, Hello::kSize> Hello::to_bytes() const {
  std::array<std::byte, kSize> bytes{};
  const Bytes out(bytes);
  base::store64(out, 0, kMagic);
  base::store32(out, 8, mtu);
  base::store32(out, 12, qpn);
  base::store32(out, 16, first_psn);
  base::store32(out, 20, rkey);
  base::store64(out, 24, region_at);
  base::store64(out, 32, region_size);
  base::store32(out, 40, static_cast<std::uint32_t>(ports.size()));
  base::store32(out, 44, secret_fingerprint);
  base::store64(out, 48, incarnation);
  base::store64(out, 56,
                (shared_memory ? 1u : 0u) | (encapsulates ? 2u : 0u) | (as_nic ? 4u : 0u) |
                    (whole_icrc ? 8u : 0u) | (steered ? 16u : 0u));
  base::store64(out, 64, host);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    base::store_ipv6(out, 72 + 18 * i, ports[i].ip());
    base::store16(out, 88 + 18 * i, ports[i].process);
  }
  return bytes;
}

Result<Hello> Hello::from_bytes(std::span<const std::byte, kSize> bytes) {
  const ConstBytes in(bytes);
  if (base::load64(in, 0) >> 32 != kMagic >> 32)
    return Error{ErrorKind::kInvalid, "what answered there is not weft"};
  if (base::load64(in, 0) != kMagic) {
    return Error{ErrorKind::kInvalid,
                 "the other end speaks another version; install the same weft on both"};
  }
  Hello hello;
  hello.mtu = base::load32(in, 8);
  hello.qpn = base::load32(in, 12) & wire::kQpnMask;
  hello.first_psn = base::load32(in, 16) & Psn::kMask;
  hello.rkey = base::load32(in, 20);
  hello.region_at = base::load64(in, 24);
  hello.region_size = base::load64(in, 32);
  hello.secret_fingerprint = base::load32(in, 44);
  hello.incarnation = base::load64(in, 48);
  hello.shared_memory = (base::load64(in, 56) & 1) != 0;
  hello.encapsulates = (base::load64(in, 56) & 2) != 0;
  hello.as_nic = (base::load64(in, 56) & 4) != 0;
  hello.whole_icrc = (base::load64(in, 56) & 8) != 0;
  hello.steered = (base::load64(in, 56) & 16) != 0;
  hello.host = base::load64(in, 64);
  const std::uint32_t count = base::load32(in, 40);
  if (count == 0 || count > world::kPortsMax)
    return Error{ErrorKind::kInvalid, "the other end names no planes, or too many"};
  for (std::size_t i = 0; i < count; ++i) {
    hello.ports.push_back(
        world::Address::of(base::load_ipv6(in, 72 + 18 * i), base::load16(in, 88 + 18 * i)));
    if (hello.ports.back().process >= net::kProcessesMax)
      return Error{ErrorKind::kInvalid, "the other end names a process slot that cannot be"};
  }
  return hello;
}

std::array<std::byte, Offer::kSize> Offer::to_bytes() const {
  std::array<std::byte, kSize> bytes{};
  base::store32(Bytes(bytes), 0, shared_memory ? 1 : 0);
  base::store32(Bytes(bytes), 4, mtu);
  return bytes;
}

Offer Offer::from_bytes(std::span<const std::byte, kSize> bytes) {
  const ConstBytes in(bytes);
  return {.shared_memory = (base::load32(in, 0) & 1) != 0, .mtu = base::load32(in, 4)};
}

Result<std::unique_ptr<NetEnd>> NetEnd::open(const NetOptions& options) {
  std::unique_ptr<NetEnd> end(new NetEnd(options));
  end->prng_ = Prng(net::random_seed());
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
  suit_software(config);
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
  out.host = net::host_identity(options_.world.network_namespace);
  out.shared_memory = shares_memory();
  out.encapsulates = world_->srv6_form() == net::Srv6Form::kMrc;
  out.steered = world_->srv6_form() != net::Srv6Form::kAuto;
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

Result<void> check_fit(const Hello& ours, const Hello& theirs) {
  const auto loops = [](const auto& ports) {
    return std::any_of(ports.begin(), ports.end(),
                       [](const world::Address& a) { return net::is_loopback(a.ip()); });
  };
  if (ours.host != 0 && theirs.host != 0 && ours.host != theirs.host &&
      (loops(ours.ports) || loops(theirs.ports))) {
    return Error{ErrorKind::kInvalid,
                 "the two ends are on different hosts (or in different network namespaces), and "
                 "their planes on the loopback lead nowhere; name interfaces with --ifname, at "
                 "both ends"};
  }
  const auto twice = std::find_first_of(
      ours.ports.begin(), ours.ports.end(), theirs.ports.begin(), theirs.ports.end(),
      [](const world::Address& a, const world::Address& b) { return a.ip() == b.ip(); });
  if (ours.host != 0 && theirs.host != 0 && ours.host != theirs.host && twice != ours.ports.end()) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("the two ends are on different hosts and both have the address {}; give "
                    "each planes of its own with --planes (in a lab: --fabric)",
                    net::text_of(twice->ip()))};
  }
  if (theirs.mtu != 0 && ours.mtu != 0 && theirs.mtu != ours.mtu) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("this end has an MTU of {}, the other of {}; give both the same --mtu",
                             ours.mtu, theirs.mtu)};
  }
  if (theirs.ports.size() != ours.ports.size()) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("this end has {} planes, the other {}; give both as many with --planes "
                    "or --ifname",
                    ours.ports.size(), theirs.ports.size())};
  }
  for (std::size_t p = 0; p < ours.ports.size(); ++p) {
    if (net::is_ipv4(ours.ports[p].ip()) == net::is_ipv4(theirs.ports[p].ip())) continue;
    return Error{
        ErrorKind::kInvalid,
        fmt::format("plane {}: this end has the address {}, the other {}; give both IPv4 or "
                    "both IPv6 with --planes",
                    p + 1, net::text_of(ours.ports[p].ip()), net::text_of(theirs.ports[p].ip()))};
  }
  if (ours.steered != theirs.steered) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("{} is steered through a fabric, {} is not; give both --fabric FILE, or "
                    "neither",
                    ours.steered ? "this end" : "the other end",
                    ours.steered ? "the other" : "this one")};
  }
  if (ours.encapsulates != theirs.encapsulates) {
    return Error{ErrorKind::kInvalid,
                 ours.encapsulates
                     ? "this end sends uSIDs in MRC's own form, the other does not; give both the "
                       "same --srv6"
                     : "the other end sends uSIDs in MRC's own form, this one does not; give both "
                       "the same --srv6"};
  }
  // After what brings it about: MRC's own form has whole ICRCs.
  if (ours.as_nic != theirs.as_nic) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("{} has peers = mrc, {} has not; give both devices the same (WEFT_PEERS)",
                    ours.as_nic ? "this end" : "the other end",
                    ours.as_nic ? "the other" : "this one")};
  }
  if (ours.whole_icrc != theirs.whole_icrc) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("ICRCs of {} cover the payload, those of {} do not; give both devices the "
                    "same (WEFT_ICRC)",
                    ours.whole_icrc ? "this end" : "the other end",
                    ours.whole_icrc ? "the other" : "this one")};
  }
  if (theirs.secret_fingerprint != ours.secret_fingerprint) {
    const bool here = ours.secret_fingerprint != 0, there = theirs.secret_fingerprint != 0;
    const char* const what = here && there ? "the two ends have different job secrets"
                             : here        ? "this end has a job secret, the other has none"
                                           : "the other end has a job secret, this one has none";
    return Error{ErrorKind::kInvalid, fmt::format("{}; give both the same --secret-file", what)};
  }
  return {};
}

Result<Offer> NetEnd::offer(const Hello& peer) {
  WEFT_CHECK(check_fit(hello(), peer));
  Offer out;
  out.shared_memory = peer.shared_memory && world_->shared_memory_ev(peer.ports[0]).has_value();
  out.mtu = world_->payload_to(peer.ports);
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
  WEFT_CHECK(endpoint_->connect(net::clock_now(), qpn, info));
  net::log(net::LogLevel::kInfo, "QP {:#x} is connected to QP {:#x} of slot {} over {}", qpn,
           peer.qpn, peer.ports[0].process,
           carrier == Carrier::kSharedMemory ? "shared memory"
           : !shares_memory()                ? "the planes"
           : peer.shared_memory ? "the planes: the ends are on two hosts or of two users"
                                : "the planes: the other end takes no shared memory");
  return carrier;
}

}  // namespace weft::cli
