#include "net/udp_world.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/assert.h"
#include "net/clock.h"
#include "wire/datagram.h"
#include "wire/framing.h"
#include "wire/icrc.h"

namespace weft::net {
namespace {

// Runs taken from one socket at a time: then others have their turn.
constexpr std::size_t kRunsMax = 8;
// The kernel joins no more packets than this into one run.
constexpr std::size_t kRunPacketsMax = 64;
// A UDP datagram before it is cut into segments.
constexpr std::size_t kSendBytesMax = 65'000;
// What a port takes at a time.
constexpr std::uint32_t kPortRoom = 32;
// Nobody looked for that long: the world itself stood still.
constexpr Duration kLate = Duration::ms(1);
// How often links are looked at: asking costs a system call.
constexpr Duration kLinksEvery = Duration::us(100);

struct Trailer {
  std::array<std::byte, 3 + wire::kIcrcSize> bytes;
};

void* mutable_bytes(std::uint64_t at) { return reinterpret_cast<void*>(at); }

bool is_same_run(const world::Datagram& a, const world::Datagram& b) {
  return a.port == b.port && a.entropy == b.entropy && a.dscp == b.dscp && a.ecn == b.ecn &&
         a.peer == b.peer;
}

std::size_t datagram_size(const world::Datagram& d) {
  return wire::datagram_size({.header_size = d.header.size(), .payload_size = d.payload.size});
}

}  // namespace

std::vector<Ipv6> loopback_planes() {
  std::vector<Ipv6> planes;
  for (std::uint8_t p = 1; p <= 4; ++p) planes.push_back(ipv4(127, 0, p, 1));
  return planes;
}

UdpWorld::UdpWorld(const UdpWorldConfig& config)
    : config_(config),
      wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      buffer_(kRunsMax * UdpSocket::kRunBytes) {
  in_.reserve(kRunsMax * kRunPacketsMax);
  now_ = last_pass_ = clock_now();
}

UdpWorld::~UdpWorld() {
  if (wake_fd_ >= 0) close(wake_fd_);
}

Result<std::unique_ptr<UdpWorld>> UdpWorld::open(const UdpWorldConfig& config) {
  if (config.planes.empty() || config.planes.size() > world::kPortsMax) {
    return Error{ErrorKind::kInvalid, "a device has 1 to 8 planes"};
  }
  if (config.evs_per_plane == 0 || config.evs_per_plane > kEvsPerPlaneMax) {
    return Error{ErrorKind::kInvalid, "a plane has 1 to 64 EVs"};
  }
  std::unique_ptr<UdpWorld> world(new UdpWorld(config));
  if (world->wake_fd_ < 0)
    return Error{ErrorKind::kSystem, std::string("eventfd: ") + std::strerror(errno)};
  WEFT_TRY(LinkWatch links, LinkWatch::open(config.planes));
  world->links_ = std::make_unique<LinkWatch>(std::move(links));
  world->told_up_ = static_cast<world::PortMask>((1u << config.planes.size()) - 1);
  for (std::uint16_t process = 0; process < kProcessesMax; ++process) {
    const auto opened = world->open_slot(process);
    if (opened) return world;
    if (opened.error().kind != ErrorKind::kExhausted) return opened.error();
  }
  return Error{ErrorKind::kExhausted, "all 256 process slots of these addresses are taken"};
}

// The listening ports first: whoever has them has the slot.
Result<void> UdpWorld::open_slot(std::uint16_t process) {
  planes_.clear();
  process_ = process;
  for (const Ipv6& address : config_.planes) {
    WEFT_TRY(UdpSocket listen, UdpSocket::open({.address = address,
                                                .port = listen_port(process),
                                                .receive_bytes = config_.socket_buffer_bytes,
                                                .receives = true}));
    planes_.push_back({.address = address, .listen = std::move(listen), .senders = {}});
  }
  for (Plane& plane : planes_) {
    for (std::uint32_t ev = 0; ev < config_.evs_per_plane; ++ev) {
      WEFT_TRY(UdpSocket sender, UdpSocket::open({.address = plane.address,
                                                  .port = source_port(process, ev),
                                                  .send_bytes = config_.socket_buffer_bytes}));
      plane.senders.push_back(std::move(sender));
    }
  }
  return {};
}

std::vector<world::Address> UdpWorld::addresses() const {
  std::vector<world::Address> out;
  for (const Plane& plane : planes_) out.push_back(world::Address::of(plane.address, process_));
  return out;
}

std::vector<fabric::Ev> UdpWorld::evs() const {
  std::vector<fabric::Ev> out;
  for (std::uint32_t ev = 0; ev < config_.evs_per_plane; ++ev) {
    for (std::size_t plane = 0; plane < planes_.size(); ++plane) {
      out.push_back({.value = source_port(process_, ev), .port = static_cast<std::uint8_t>(plane)});
    }
  }
  return out;
}

std::uint32_t UdpWorld::receive_bytes() const {
  std::uint32_t least = 0xffff'ffff;
  for (const Plane& plane : planes_) least = std::min(least, plane.listen.receive_bytes());
  return least;
}

Result<void> UdpWorld::attach(std::span<const world::Address> ports, world::Node& node) {
  if (node_ != nullptr) return Error{ErrorKind::kInvalid, "this world has a node already"};
  const auto ours = addresses();
  if (!std::equal(ports.begin(), ports.end(), ours.begin(), ours.end()))
    return Error{ErrorKind::kInvalid, "a node takes this world's own addresses"};
  node_ = &node;
  return {};
}

void UdpWorld::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_fd_, &one, sizeof(one));  // full: awake anyway
}

// --- in ----------------------------------------------------------------------------------------

bool UdpWorld::is_intact(std::uint32_t plane, const UdpSocket::Incoming& run,
                         const wire::DatagramParts& parts) const {
  if (parts.icrc.empty()) return true;  // trimmed
  const std::size_t size =
      parts.header.size() + parts.payload.size() + parts.padding.size() + parts.icrc.size();
  wire::Icrc icrc(wire::IcrcFlow{.source = run.from,
                                 .destination = planes_[plane].address,
                                 .source_port = run.port,
                                 .destination_port = listen_port(process_),
                                 .udp_size = static_cast<std::uint16_t>(size + wire::kUdpSize)});
  icrc.add_header(parts.header);
  if (config_.icrc == IcrcCover::kFull) {
    icrc.add(parts.payload);
    icrc.add(parts.padding);
  }
  return icrc.matches(parts.icrc);
}

void UdpWorld::take_run(std::uint32_t plane, const UdpSocket::Incoming& run, ConstBytes bytes) {
  const auto dscp = static_cast<world::Dscp>(run.traffic_class >> 2);
  const bool trimmed = world::is_trimmed(dscp);
  for (std::size_t at = 0; at < bytes.size(); at += run.segment) {
    const ConstBytes datagram =
        bytes.subspan(at, std::min<std::size_t>(run.segment, bytes.size() - at));
    const auto parts = wire::split_datagram(datagram, {.trimmed = trimmed});
    if (!parts) {
      ++drops_[static_cast<std::size_t>(parts.error())];
      continue;
    }
    if (in_.size() == in_.capacity()) {
      ++drops_[static_cast<std::size_t>(DropReason::kNoBuffer)];
      continue;
    }
    in_.push_back({.port = static_cast<world::PortIndex>(plane),
                   .ecn = static_cast<world::Ecn>(run.traffic_class & 3),
                   .dscp = dscp,
                   .intact = is_intact(plane, run, *parts),
                   .entropy = run.port,
                   .received_at = now_,
                   .peer = world::Address::of(run.from, process_of(run.port)),
                   .header = parts->header,
                   .payload = {.at = reinterpret_cast<std::uintptr_t>(parts->payload.data()),
                               .size = static_cast<std::uint32_t>(parts->payload.size())}});
  }
}

bool UdpWorld::receive(std::uint32_t plane) {
  std::array<UdpSocket::Incoming, kRunsMax> runs;
  const std::size_t count = planes_[plane].listen.receive(buffer_, runs);
  if (count == 0) return false;
  ++counters_.receives;
  in_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const UdpSocket::Incoming& run = runs[i];
    if (run.overflow != planes_[plane].overflow) {
      counters_.drops_host += run.overflow - planes_[plane].overflow;
      planes_[plane].overflow = run.overflow;
    }
    take_run(plane, run, ConstBytes(buffer_).subspan(i * UdpSocket::kRunBytes, run.size));
  }
  counters_.packets_received += in_.size();
  node_->on_datagrams(now_, in_);
  return true;
}

// --- out ---------------------------------------------------------------------------------------

// The longest run at the front of `out` that one system call takes: one EV, one peer, equal sizes,
// the last may be shorter. Returns how many packets it was.
std::size_t UdpWorld::send_run(std::span<const world::Datagram> out) {
  static_assert(std::tuple_size_v<decltype(out_)> <= kRunPacketsMax);
  std::array<iovec, 3 * kRunPacketsMax> pieces;
  std::array<Trailer, kRunPacketsMax> trailers;
  const world::Datagram& first = out[0];
  const std::uint16_t to_port = listen_port(first.peer.process);
  const Plane& plane = planes_[first.port];
  const std::size_t segment = datagram_size(first);
  std::size_t count = 0, used = 0, bytes = 0;
  for (bool last = false; count < out.size() && !last; ++count) {
    const world::Datagram& d = out[count];
    const std::size_t size = datagram_size(d);
    if (!is_same_run(first, d) || size > segment || bytes + size > kSendBytesMax) break;
    last = size < segment;
    bytes += size;
    const std::size_t pad = wire::pad_for(d.payload.size);
    Trailer& trailer = trailers[count];
    std::memset(trailer.bytes.data(), 0, pad);
    wire::Icrc icrc(wire::IcrcFlow{.source = plane.address,
                                   .destination = d.peer.ip(),
                                   .source_port = static_cast<std::uint16_t>(d.entropy),
                                   .destination_port = to_port,
                                   .udp_size = static_cast<std::uint16_t>(size + wire::kUdpSize)});
    icrc.add_header(d.header);
    if (config_.icrc == IcrcCover::kFull) {
      icrc.add({static_cast<const std::byte*>(mutable_bytes(d.payload.at)), d.payload.size});
      icrc.add(ConstBytes(trailer.bytes).first(pad));
    }
    icrc.store(Bytes(trailer.bytes).subspan(pad));
    pieces[used++] = {const_cast<std::byte*>(d.header.data()), d.header.size()};
    if (d.payload.size > 0) pieces[used++] = {mutable_bytes(d.payload.at), d.payload.size};
    pieces[used++] = {trailer.bytes.data(), pad + wire::kIcrcSize};
  }
  const std::uint32_t ev = first.entropy - source_port(process_, 0);
  const UdpSocket& sender = plane.senders[ev < plane.senders.size() ? ev : 0];
  const UdpSocket::Outgoing what{
      .to = first.peer.ip(),
      .port = to_port,
      .traffic_class = static_cast<std::uint8_t>(static_cast<unsigned>(first.dscp) << 2 |
                                                 static_cast<unsigned>(first.ecn)),
      .segment = count > 1 ? static_cast<std::uint16_t>(segment) : std::uint16_t{0}};
  ++counters_.sends;
  if (sender.send(what, std::span(pieces).first(used))) {
    counters_.packets_sent += count;
  } else {
    counters_.drops_send += count;
  }
  return count;
}

bool UdpWorld::transmit() {
  std::array<world::PortRoom, world::kPortsMax> room;
  room.fill({.packets = kPortRoom});
  const std::size_t count = node_->poll_transmit(now_, std::span(room).first(planes_.size()), out_);
  for (std::size_t sent = 0; sent < count;)
    sent += send_run(std::span(out_).subspan(sent, count - sent));
  return count > 0;
}

// --- time --------------------------------------------------------------------------------------

void UdpWorld::look_at_links() {
  if (now_ < links_next_) return;
  links_next_ = now_ + kLinksEvery;
  links_->look();
  const auto changed = static_cast<world::PortMask>(told_up_ ^ links_->up());
  for (std::uint32_t plane = 0; plane < planes_.size(); ++plane) {
    if ((changed >> plane & 1) == 0) continue;
    node_->on_port(now_, static_cast<world::PortIndex>(plane),
                   {.up = (links_->up() >> plane & 1) != 0});
  }
  told_up_ = links_->up();
}

bool UdpWorld::pass() {
  WEFT_ASSERT(node_ != nullptr);
  now_ = clock_now();
  look_at_links();
  const Duration late = now_ - last_pass_ > kLate ? now_ - last_pass_ : Duration();
  last_pass_ = now_;
  bool moved = false;
  for (std::uint32_t plane = 0; plane < planes_.size(); ++plane) moved |= receive(plane);
  if (node_->next_deadline() <= now_) {
    node_->on_deadline(now_, late);
    moved = true;
  }
  return transmit() || moved;
}

bool UdpWorld::progress(Time limit) {
  const Time start = clock_now();
  for (;;) {
    if (pass()) return true;
    if (now_ >= limit) return false;
    if (now_ - start < config_.spin) continue;
    // What was slept on purpose is not late.
    const Time until = std::min(limit, node_->next_deadline());
    sleep_until(until);
    last_pass_ = std::min(clock_now(), until);
  }
}

bool UdpWorld::step(Time limit) {
  while (now_ < limit) progress(limit);
  return true;
}

void UdpWorld::sleep_until(Time limit) {
  std::array<pollfd, world::kPortsMax + 2> fds{};
  for (std::size_t i = 0; i < planes_.size(); ++i)
    fds[i] = {.fd = planes_[i].listen.fd(), .events = POLLIN, .revents = 0};
  fds[planes_.size()] = {.fd = wake_fd_, .events = POLLIN, .revents = 0};
  fds[planes_.size() + 1] = {.fd = links_->fd(), .events = POLLIN, .revents = 0};
  timespec timeout{};
  if (limit != kNever) {
    const std::int64_t ns = std::max<std::int64_t>((limit - clock_now()).ns(), 0);
    timeout = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }
  ppoll(fds.data(), planes_.size() + 2, limit == kNever ? nullptr : &timeout, nullptr);
  links_next_ = Time();
  std::uint64_t woken = 0;
  if ((fds[planes_.size()].revents & POLLIN) != 0) {
    [[maybe_unused]] const auto taken = read(wake_fd_, &woken, sizeof(woken));
  }
}

CounterTable UdpWorld::counters() const {
  CounterTable table = {{"net.packets_sent", "packets", counters_.packets_sent},
                        {"net.packets_received", "packets", counters_.packets_received},
                        {"net.sends", "calls", counters_.sends},
                        {"net.receives", "calls", counters_.receives},
                        {"net.drops_send", "packets", counters_.drops_send},
                        {"net.drops_host", "packets", counters_.drops_host}};
  return table;
}

}  // namespace weft::net
