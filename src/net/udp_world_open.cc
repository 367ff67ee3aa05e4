// UdpWorld, opening and closing: its slot and its sockets.
#include <fmt/core.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

#include "fabric/address.h"
#include "net/udp_world.h"
#include "os/address.h"
#include "os/interfaces.h"
#include "os/log.h"
#include "os/network_namespace.h"
#include "os/system_error.h"

namespace weft::net {
// In the carrier form the address on arrival contains the last uSID.
Ipv6 UdpWorld::listen_address(const UdpWorldConfig& config, std::uint32_t plane) {
  if (config.ev_mode != EvMode::kSrv6 || config.srv6 == Srv6Form::kMrc) return config.planes[plane];
  return end_of_usids(config, plane);
}

std::vector<Ipv6> loopback_planes() {
  std::vector<Ipv6> planes;
  for (std::uint8_t p = 1; p <= 4; ++p) planes.push_back(base::ipv4(127, 0, p, 1));
  return planes;
}

UdpWorld::UdpWorld(const UdpWorldConfig& config, const Steering& steering)
    : config_(config),
      steering_(steering),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      waiter_({.spin = config.spin, .epoch = config.epoch}),
      buffer_(kRunsMax * os::UdpSocket::kRunBytes) {
  in_.reserve(kRunsMax * kRunPacketsMax);
  host_.reserve(config_.planes.size());
  if (config_.rate_cap) cap_.emplace(*config_.rate_cap, config_.mtu);
  now_ = last_pass_ = clock();
}

UdpWorld::~UdpWorld() {
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

Result<void> UdpWorld::suit_peers(UdpWorldConfig& config) {
  if (config.peers == Peers::kWeft) return {};
  if (!config.job_secret.empty())
    return Error{ErrorKind::kInvalid, "a job secret is between Weft's ends; take peers = weft"};
  for (const Ipv6& plane : config.planes) {
    if (!base::is_ipv4(plane) || base::is_loopback(plane)) continue;
    return Error{ErrorKind::kInvalid,
                 fmt::format("peers = mrc over {}: an ICRC covers IPv4's header, which the system "
                             "writes; take IPv6 planes",
                             os::text_of(plane))};
  }
  config.icrc = IcrcCover::kFull;
  config.shared_memory = false;
  // The EVs of other MRC implementations are ports and flow labels.
  if (config.ev_mode == EvMode::kUdpPort && !base::is_ipv4(config.planes[0]))
    config.ev_mode = EvMode::kPortAndLabel;
  return {};
}

Result<UdpWorldConfig> UdpWorld::settle(UdpWorldConfig config) {
  if (config.ev_mode == EvMode::kSrv6 && config.place) {
    config.planes.clear();
    for (std::uint32_t p = 0; p < config.place->topology.plane_count(); ++p)
      config.planes.push_back(fabric::address_of({.host = config.place->self, .plane = p}));
  }
  if (config.planes.empty() || config.planes.size() > world::kPortsMax)
    return Error{ErrorKind::kInvalid, "a device has 1 to 8 planes"};
  for (auto plane = config.planes.begin(); plane != config.planes.end(); ++plane) {
    if (std::find(config.planes.begin(), plane, *plane) != plane)
      return Error{ErrorKind::kInvalid, os::text_of(*plane) + " is given for two planes"};
  }
  for (const Ipv6& plane : config.planes) {
    if (config.ev_mode != EvMode::kPortAndLabel || !base::is_ipv4(plane)) continue;
    return Error{ErrorKind::kInvalid,
                 fmt::format("EV mode stev over {}: IPv4 has no flow labels; take IPv6 planes, or "
                             "EV mode port (--ev-mode, ev_mode)",
                             os::text_of(plane))};
  }
  WEFT_CHECK(suit_peers(config));
  return config;
}

Result<std::unique_ptr<UdpWorld>> UdpWorld::open(const UdpWorldConfig& wanted) {
  WEFT_TRY(UdpWorldConfig config, settle(wanted));
  WEFT_TRY(const Steering steering,
           Steering::make({.mode = config.ev_mode,
                           .plane_count = static_cast<std::uint32_t>(config.planes.size()),
                           .evs_per_plane = config.evs_per_plane,
                           .place = config.place}));
  WEFT_TRY(const os::NamespaceScope scope, os::NamespaceScope::enter(config.network_namespace));
  if (config.ev_mode == EvMode::kSrv6) {
    WEFT_TRY(config.srv6, choose_srv6_form(config));
    // MRC's form has no UDP checksum, so the ICRC has to cover the payload.
    if (config.srv6 == Srv6Form::kMrc) config.icrc = IcrcCover::kFull;
  }
  std::unique_ptr<UdpWorld> world(new UdpWorld(config, steering));
  if (world->epoll_fd_ < 0) return os::system_error("epoll_create1");
  WEFT_TRY(world->wake_event_, os::WakeEvent::open());
  WEFT_TRY(LinkWatch links, LinkWatch::open(config.planes));
  world->links_ = std::make_unique<LinkWatch>(std::move(links));
  WEFT_TRY(world->alarm_, os::Alarm::open());
  // Peers that do not know slots send to the first.
  const std::uint16_t slots = config.peers == Peers::kMrc ? 1 : wire::kProcessesMax;
  for (std::uint16_t process = 0; process < slots; ++process) {
    auto opened = world->open_slot(process);
    if (opened) opened = world->open_tunnels();
    if (opened) opened = world->open_shared_memory();
    if (!opened && opened.error().kind == ErrorKind::kExhausted) continue;
    WEFT_CHECK(opened);
    WEFT_CHECK(world->watch_all());
    WEFT_CHECK(world->open_security());
    world->open_host();
    os::log(os::LogLevel::kInfo,
            "slot {}, UDP port {}, {} planes, receive buffers of {} bytes (asked {})", process,
            wire::listen_port(process), world->planes_.size(), world->receive_bytes(),
            2 * std::uint64_t{config.receive_buffer_bytes});
    return world;
  }
  if (slots > 1)
    return Error{ErrorKind::kExhausted, "all 256 process slots of these addresses are taken"};
  return Error{ErrorKind::kBusy,
               fmt::format("UDP port {} of {} is taken, and peers that are not Weft send nowhere "
                           "else; end the process that has it (ss -ulnp)",
                           wire::listen_port(0), os::text_of(config.planes[0]))};
}

// Binds the listening ports first: the process that has them owns the slot.
Result<void> UdpWorld::open_slot(std::uint16_t process) {
  planes_.clear();
  process_ = process;
  // Peers whose ICRC covers the whole packet may send no UDP checksum.
  const bool others = srv6_form() == Srv6Form::kMrc || config_.peers == Peers::kMrc;
  for (std::uint32_t p = 0; p < config_.planes.size(); ++p) {
    WEFT_TRY(os::UdpSocket listen,
             os::UdpSocket::open({.address = listen_address(config_, p),
                                  .port = wire::listen_port(process),
                                  .receive_bytes = config_.receive_buffer_bytes,
                                  .receives = true,
                                  .singly = srv6_form() == Srv6Form::kMrc,
                                  .any_checksum = others}));
    planes_.push_back(
        {.address = config_.planes[p], .listen = std::move(listen), .senders = {}, .held = {}});
    planes_.back().held.reserve(kPortRoom);
    for (auto& bytes : planes_.back().held_bytes) bytes.resize(kPortRoom * config_.mtu);
  }
  for (Plane& plane : planes_) {
    for (std::uint32_t i = 0; i < steering_->sockets(); ++i) {
      WEFT_TRY(os::UdpSocket sender,
               os::UdpSocket::open({.address = plane.address,
                                    .port = wire::source_port(process, i),
                                    .send_bytes = config_.send_buffer_bytes,
                                    .hears_refusals = true,
                                    .by_carrier = config_.ev_mode == EvMode::kSrv6}));
      plane.senders.push_back(std::move(sender));
    }
  }
  return {};
}

Result<void> UdpWorld::open_shared_memory() {
  shm_ = nullptr;
  // With a secret only sealed packets are accepted, and rings carry none.
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
  // The UDP ports prove that the slot is ours, but any process of this host may have taken the
  // name.
  if (!opened && opened.error().kind == ErrorKind::kExhausted) {
    os::log(os::LogLevel::kWarn, "no shared memory: {}", opened.error().message);
    return {};
  }
  WEFT_TRY(shm_, std::move(opened));
  return {};
}

std::optional<fabric::Ev> UdpWorld::shared_memory_ev(const world::Address& peer) {
  if (shm_ == nullptr) return std::nullopt;
  // A name belongs to a network namespace: here that of this world.
  const auto scope = os::NamespaceScope::enter(config_.network_namespace);
  if (!scope || !shm_->reach(peer)) return std::nullopt;
  return fabric::Ev{.value = ShmPort::kEv, .port = static_cast<std::uint8_t>(planes_.size())};
}

void UdpWorld::abandon() {
  for (const Plane& plane : planes_) {
    close(plane.listen.fd());
    for (const os::UdpSocket& sender : plane.senders) close(sender.fd());
    if (plane.tunnel) close(plane.tunnel->receive_fd()), close(plane.tunnel->send_fd());
  }
  for (const os::UdpSocket& socket : host_) close(socket.fd());
  if (shm_ != nullptr) shm_->abandon();
  close(links_->fd());
  close(alarm_->fd());
  close(wake_event_->fd());
  close(epoll_fd_);
}

std::vector<world::Address> UdpWorld::addresses() const {
  std::vector<world::Address> out;
  for (const Plane& plane : planes_) out.push_back(world::Address::of(plane.address, process_));
  return out;
}

std::uint32_t UdpWorld::receive_bytes() const {
  std::uint32_t least = 0xffff'ffff;
  for (const Plane& plane : planes_) least = std::min(least, receive_bytes(plane));
  return least;
}

Result<void> UdpWorld::attach(std::span<const world::Address> ports, world::Node& node) {
  if (node_ != nullptr) return Error{ErrorKind::kInvalid, "this world has a node already"};
  const auto ours = addresses();
  if (!std::equal(ports.begin(), ports.end(), ours.begin(), ours.end()))
    return Error{ErrorKind::kInvalid, "a node takes this world's own addresses"};
  node_ = &node;
  told_up_ = links_->up();
  for (std::uint32_t p = 0; p < planes_.size(); ++p) tell_port(p);
  return {};
}

}  // namespace weft::net
