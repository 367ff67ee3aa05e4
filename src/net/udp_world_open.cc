// UdpWorld, opening and closing: its slot, its sockets, and the objects that use them.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "net/srv6_form.h"
#include "net/udp_world.h"
#include "os/interfaces.h"
#include "os/log.h"
#include "os/network_namespace.h"

namespace weft::net {

UdpWorld::UdpWorld(const UdpWorldConfig& config, const Steering& steering)
    : config_(config),
      steering_(steering),
      refusals_(static_cast<std::uint32_t>(config.planes.size())),
      waiter_({.spin = config.spin,
               .spin_oversubscribed = config.spin_oversubscribed,
               .epoch = config.epoch}) {
  if (config_.rate_cap) rate_cap_.emplace(*config_.rate_cap, config_.mtu);
  now_ = last_pass_ = clock();
}

UdpWorld::~UdpWorld() = default;

Result<std::unique_ptr<UdpWorld>> UdpWorld::open(const UdpWorldConfig& wanted) {
  WEFT_TRY(UdpWorldConfig config, complete_config(wanted));
  WEFT_TRY(const Steering steering,
           Steering::make({.carrier = config.ev_carrier,
                           .plane_count = static_cast<std::uint32_t>(config.planes.size()),
                           .evs_per_plane = config.evs_per_plane,
                           .place = config.place}));
  WEFT_TRY(const os::NamespaceScope scope, os::NamespaceScope::enter(config.network_namespace));
  if (config.ev_carrier == EvCarrier::kSrv6) {
    WEFT_TRY(config.srv6, choose_srv6_form(config.srv6, config.planes));
    // In MRC's form there is no UDP checksum, so the ICRC has to cover the payload.
    if (config.srv6 == Srv6Form::kMrc) config.icrc = IcrcCover::kFull;
  }
  std::unique_ptr<UdpWorld> world(new UdpWorld(config, steering));
  WEFT_TRY(world->watch_, SocketWatch::open());
  WEFT_TRY(LinkWatch links, LinkWatch::open(config.planes));
  world->links_.emplace(std::move(links));
  WEFT_CHECK(world->take_process_slot());
  WEFT_CHECK(world->watch_all());
  WEFT_CHECK(world->make_run_ends());
  // A HostListener is not started with a job secret: only processes that know each other have keys.
  // Nor in MRC's SRv6 form: there the kernel cannot refuse packets to a single port, so peers of an
  // ended process would not learn of its end.
  if (world->process_ != 0 && world->sealed_ == nullptr && world->srv6_form() != Srv6Form::kMrc) {
    std::vector<Ipv6> addresses;
    for (std::uint32_t p = 0; p < config.planes.size(); ++p)
      addresses.push_back(listen_address(config, p));
    world->host_.start(world->clock(), std::move(addresses));
  }
  os::log(os::LogLevel::kInfo,
          "slot {}, UDP port {}, {} planes, receive buffers of {} bytes (asked {})",
          world->process_, wire::listen_port(world->process_), world->planes_.size(),
          world->receive_bytes(), 2 * std::uint64_t{config.receive_buffer_bytes});
  return world;
}

// Takes the first slot whose UDP ports are free, and opens its planes and its shared memory.
Result<void> UdpWorld::take_process_slot() {
  // Peers that are not Weft do not know slots and send to the port of slot 0.
  const std::uint16_t slots = config_.peers == PeerKind::kNic ? 1 : wire::kProcessesMax;
  for (process_ = 0; process_ < slots; ++process_) {
    auto opened = open_planes();
    if (opened) opened = open_shared_memory();
    if (opened || opened.error().kind != ErrorKind::kExhausted) return opened;
  }
  if (slots > 1)
    return Error{ErrorKind::kExhausted, "all 256 process slots of these addresses are taken"};
  return Error{ErrorKind::kBusy,
               fmt::format("UDP port {} of {} is taken, and peers that are not Weft send nowhere "
                           "else; end the process that has it (ss -ulnp)",
                           wire::listen_port(0), os::text_of(config_.planes[0]))};
}

// Binds the listening ports first: the process that has them owns the slot.
Result<void> UdpWorld::open_planes() {
  planes_.clear();
  planes_.reserve(config_.planes.size());
  const bool encapsulates = srv6_form() == Srv6Form::kMrc;
  for (std::uint32_t p = 0; p < config_.planes.size(); ++p) {
    Plane::Options options{.address = config_.planes[p],
                           .listen = listen_address(config_, p),
                           .process = process_,
                           .mtu = config_.mtu,
                           .receive_bytes = config_.receive_buffer_bytes,
                           .send_bytes = config_.send_buffer_bytes,
                           .encapsulates = encapsulates,
                           .by_carrier = config_.ev_carrier == EvCarrier::kSrv6,
                           .any_checksum = encapsulates || config_.peers == PeerKind::kNic};
    if (encapsulates) {
      options.usids_end =
          usids_end(config_.place->topology, {.host = config_.place->self, .plane = p});
    }
    WEFT_TRY(Plane plane, Plane::listen(options));
    planes_.push_back(std::move(plane));
  }
  for (Plane& plane : planes_) WEFT_CHECK(plane.open_senders(steering_.sockets()));
  return {};
}

Result<void> UdpWorld::open_shared_memory() {
  shm_ = nullptr;
  // With a secret only sealed packets are accepted, and a ring carries plain records.
  const char* const why = !config_.shared_memory               ? "it is switched off"
                          : planes_.size() == world::kPortsMax ? "8 planes leave no port for it"
                          : !config_.job_secret.empty()        ? "there is a job secret"
                                                               : nullptr;
  if (why != nullptr) {
    os::log(os::LogLevel::kInfo, "no shared memory: {}", why);
    return {};
  }
  auto opened = ShmPort::open({.self = addresses()[0],
                               .port = static_cast<world::PortIndex>(planes_.size()),
                               .ring_bytes = config_.ring_bytes});
  // Owning the UDP ports proves that the slot is ours, but any process of this host may have taken
  // the name. Then this world runs without shared memory.
  if (!opened && opened.error().kind == ErrorKind::kExhausted) {
    os::log(os::LogLevel::kWarn, "no shared memory: {}", opened.error().message);
    return {};
  }
  WEFT_TRY(shm_, std::move(opened));
  return {};
}

Result<void> UdpWorld::watch_all() {
  for (std::uint8_t p = 0; p < planes_.size(); ++p) {
    for (const int fd : planes_[p].receive_fds()) WEFT_CHECK(watch_->add_plane(p, fd));
  }
  WEFT_CHECK(watch_->add(links_->fd(), {.source = SocketWatch::Source::kLinks}));
  if (shm_ != nullptr)
    WEFT_CHECK(watch_->add(shm_->fd(), {.source = SocketWatch::Source::kSharedMemory}));
  return {};
}

// Makes the sender and the receiver, which convert between datagrams and runs, plain or sealed.
Result<void> UdpWorld::make_run_ends() {
  if (!config_.job_secret.empty()) {
    WEFT_TRY(sealed_, SealedPackets::make({.job_secret = config_.job_secret,
                                           .process = process_,
                                           .qps_max = config_.secured_qps_max,
                                           .evs = evs()}));
    // The keys are derived: erase our copy of the secret.
    std::fill(config_.job_secret.begin(), config_.job_secret.end(), std::byte{0});
  }
  sender_.emplace(RunSender::WorldParts{.planes = planes_,
                                        .steering = steering_,
                                        .watch = *watch_,
                                        .refusals = refusals_,
                                        .counters = counters_,
                                        .sealed = sealed_.get()},
                  process_, config_.icrc);
  receiver_.emplace(RunReceiver::Options{.peers = config_.peers,
                                         .icrc = config_.icrc,
                                         .sealed = sealed_.get(),
                                         .sender = &*sender_},
                    steering_, counters_);
  return {};
}

Result<void> UdpWorld::attach(std::span<const world::Address> ports, world::Node& node) {
  if (node_ != nullptr) return Error{ErrorKind::kInvalid, "this world has a node already"};
  const auto ours = addresses();
  if (!std::equal(ports.begin(), ports.end(), ours.begin(), ours.end()))
    return Error{ErrorKind::kInvalid, "a node takes this world's own addresses"};
  node_ = &node;
  for (std::uint32_t p = 0; p < planes_.size(); ++p) report_port(p);
  return {};
}

void UdpWorld::abandon() {
  for (const Plane& plane : planes_) plane.abandon();
  host_.abandon();
  if (shm_ != nullptr) shm_->abandon();
  close(links_->fd());
  watch_->abandon();
}

// --- questions of callers -----------------------------------------------------------------------

std::vector<world::Address> UdpWorld::addresses() const {
  std::vector<world::Address> out;
  for (const Plane& plane : planes_) out.push_back(world::Address::of(plane.address(), process_));
  return out;
}

std::uint32_t UdpWorld::receive_bytes() const {
  std::uint32_t least = 0xffff'ffff;
  for (const Plane& plane : planes_) least = std::min(least, plane.receive_bytes());
  return least;
}

std::optional<fabric::Ev> UdpWorld::shared_memory_ev(const world::Address& peer) {
  if (shm_ == nullptr) return std::nullopt;
  // Names for shared memory belong to a network namespace: here that of this world.
  const auto scope = os::NamespaceScope::enter(config_.network_namespace);
  if (!scope || !shm_->reach(peer)) return std::nullopt;
  return fabric::Ev{.value = ShmPort::kEv, .port = static_cast<std::uint8_t>(planes_.size())};
}

PathPayload UdpWorld::path_payload() const {
  return PathPayload({.network_namespace = config_.network_namespace,
                      .planes = config_.planes,
                      .process = process_,
                      .uses_usids = config_.ev_carrier == EvCarrier::kSrv6,
                      .encapsulates = srv6_form() == Srv6Form::kMrc,
                      .is_sealed = sealed_ != nullptr},
                     steering_);
}

Result<void> UdpWorld::secure(std::uint32_t local_qpn, const seal::SecurePeer& peer) {
  if (sealed_ == nullptr) return {};
  WEFT_CHECK(sealed_->sessions().secure(clock(), local_qpn, peer));
  sender_->send_hellos(now_);
  return {};
}

void UdpWorld::end_session(std::uint32_t local_qpn) {
  if (sealed_ != nullptr) sealed_->sessions().close(local_qpn);
}

}  // namespace weft::net
