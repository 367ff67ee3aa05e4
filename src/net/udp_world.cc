#include "net/udp_world.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/assert.h"
#include "fabric/address.h"
#include "net/interfaces.h"
#include "net/log.h"
#include "net/network_namespace.h"

namespace weft::net {
namespace {

// Spinning for so long, it lets others have the core.
constexpr Duration kYieldAfter = Duration::us(20);
// The core was lent for so long: from then on for a while it is needed by others.
constexpr Duration kCrowdedGap = Duration::us(30), kCrowded = Duration::ms(20);
// Who asks for that much wants no sleep at all.
constexpr Duration kSpinForever = Duration::s(1);
// Nobody looked for that long: the world itself stood still.
constexpr Duration kLate = Duration::ms(1);
// Everything is looked at that often, however busy a ring or a plane is.
constexpr Duration kLookEvery = Duration::us(20);
// While a plane is busy and has nothing just now: its packets may come on another.
constexpr Duration kPlaneLookEvery = Duration::us(6);
constexpr int kRingLooks = 4, kPlaneLooks = 2;

// Where a plane's packets arrive: in a fabric steered by uSIDs the last one is all that is left.
Ipv6 listen_address(const UdpWorldConfig& config, std::uint32_t plane) {
  if (config.ev_mode != EvMode::kSrv6) return config.planes[plane];
  const FabricPlace& place = *config.place;
  const fabric::NodeId self{.plane = plane, .tier = fabric::Tier::kHost, .index = place.self};
  return fabric::address_of(fabric::UsidList{.usid = {fabric::usid_of(place.topology, self)}});
}

// Until something comes, or so long. Linux before 5.11 counts in milliseconds: late rather than busy.
constexpr Duration kForever = Duration::s(1'000'000);
int sleep_on(int epoll_fd, std::span<epoll_event> ready, Duration how_long) {
  const auto room = static_cast<int>(ready.size());
  const std::int64_t ns = how_long.ns();
  const timespec timeout{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  static std::atomic<bool> is_precise = true;  // of all worlds
  if (is_precise) {
    const int count = epoll_pwait2(epoll_fd, ready.data(), room, &timeout, nullptr);
    if (count >= 0 || errno != ENOSYS) return count;
    is_precise = false;
  }
  const std::int64_t ms = (ns + 999'999) / 1'000'000;
  return epoll_wait(epoll_fd, ready.data(), room,
                    static_cast<int>(std::min<std::int64_t>(ms, 60'000)));
}

Error system_error(const char* what) {
  return {ErrorKind::kSystem, std::string(what) + ": " + std::strerror(errno)};
}

}  // namespace

std::vector<Ipv6> loopback_planes() {
  std::vector<Ipv6> planes;
  for (std::uint8_t p = 1; p <= 4; ++p) planes.push_back(ipv4(127, 0, p, 1));
  return planes;
}

UdpWorld::UdpWorld(const UdpWorldConfig& config, const Steering& steering)
    : config_(config),
      steering_(steering),
      wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      buffer_(kRunsMax * UdpSocket::kRunBytes) {
  in_.reserve(kRunsMax * kRunPacketsMax);
  if (config_.rate_cap) cap_.emplace(*config_.rate_cap, config_.mtu);
  now_ = last_pass_ = clock();
}

UdpWorld::~UdpWorld() {
  if (wake_fd_ >= 0) close(wake_fd_);
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

Result<std::unique_ptr<UdpWorld>> UdpWorld::open(const UdpWorldConfig& wanted) {
  UdpWorldConfig config = wanted;
  if (config.ev_mode == EvMode::kSrv6 && config.place) {
    config.planes.clear();
    for (std::uint32_t p = 0; p < config.place->topology.plane_count(); ++p)
      config.planes.push_back(fabric::address_of({.host = config.place->self, .plane = p}));
  }
  if (config.planes.empty() || config.planes.size() > world::kPortsMax)
    return Error{ErrorKind::kInvalid, "a device has 1 to 8 planes"};
  WEFT_TRY(const Steering steering,
           Steering::make({.mode = config.ev_mode,
                           .plane_count = static_cast<std::uint32_t>(config.planes.size()),
                           .evs_per_plane = config.evs_per_plane,
                           .place = config.place}));
  std::unique_ptr<UdpWorld> world(new UdpWorld(config, steering));
  if (world->wake_fd_ < 0 || world->epoll_fd_ < 0) return system_error("eventfd, epoll");
  WEFT_TRY(const NamespaceScope scope, NamespaceScope::enter(config.network_namespace));
  if (config.ev_mode == EvMode::kSrv6) WEFT_CHECK(check_carrier_links(config.planes));
  WEFT_TRY(LinkWatch links, LinkWatch::open(config.planes));
  world->links_ = std::make_unique<LinkWatch>(std::move(links));
  for (std::uint16_t process = 0; process < kProcessesMax; ++process) {
    auto opened = world->open_slot(process);
    if (opened) opened = world->open_shared_memory();
    if (!opened && opened.error().kind == ErrorKind::kExhausted) continue;
    WEFT_CHECK(opened);
    WEFT_CHECK(world->watch_all());
    WEFT_CHECK(world->open_security());
    log(LogLevel::kInfo, "slot {}, UDP port {}, {} planes, receive buffers of {} bytes (asked {})",
        process, listen_port(process), world->planes_.size(), world->receive_bytes(),
        2 * std::uint64_t{config.receive_buffer_bytes});
    return world;
  }
  return Error{ErrorKind::kExhausted, "all 256 process slots of these addresses are taken"};
}

// The listening ports first: whoever has them has the slot.
Result<void> UdpWorld::open_slot(std::uint16_t process) {
  planes_.clear();
  process_ = process;
  for (std::uint32_t p = 0; p < config_.planes.size(); ++p) {
    WEFT_TRY(UdpSocket listen, UdpSocket::open({.address = listen_address(config_, p),
                                                .port = listen_port(process),
                                                .receive_bytes = config_.receive_buffer_bytes,
                                                .receives = true}));
    planes_.push_back(
        {.address = config_.planes[p], .listen = std::move(listen), .senders = {}, .held = {}});
    planes_.back().held.reserve(kPortRoom);
    for (auto& bytes : planes_.back().held_bytes) bytes.resize(kPortRoom * config_.mtu);
  }
  for (Plane& plane : planes_) {
    for (std::uint32_t i = 0; i < steering_->sockets(); ++i) {
      WEFT_TRY(UdpSocket sender, UdpSocket::open({.address = plane.address,
                                                  .port = source_port(process, i),
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
  // With a secret nothing is taken that is not sealed.
  const char* const why = !config_.shared_memory               ? "it is switched off"
                          : planes_.size() == world::kPortsMax ? "8 planes leave no port for it"
                          : !config_.job_secret.empty()        ? "there is a job secret"
                                                               : nullptr;
  if (why != nullptr) {
    log(LogLevel::kInfo, "no shared memory: {}", why);
    return {};
  }
  WEFT_TRY(shm_, ShmPort::open({.self = addresses()[0],
                                .port = static_cast<world::PortIndex>(planes_.size()),
                                .ring_bytes = config_.ring_bytes}));
  return {};
}

std::optional<fabric::Ev> UdpWorld::shared_memory_ev(const world::Address& peer) {
  if (shm_ == nullptr) return std::nullopt;
  // A name is of a network namespace: that of this world.
  const auto scope = NamespaceScope::enter(config_.network_namespace);
  if (!scope || !shm_->reach(peer)) return std::nullopt;
  return fabric::Ev{.value = ShmPort::kEv, .port = static_cast<std::uint8_t>(planes_.size())};
}

Result<void> UdpWorld::watch(int fd, std::uint32_t events, std::uint32_t what) {
  epoll_event event{};
  event.events = events;
  event.data.u32 = what;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) return system_error("epoll_ctl");
  return {};
}

Result<void> UdpWorld::watch_all() {
  for (std::uint32_t p = 0; p < planes_.size(); ++p) {
    WEFT_CHECK(watch(planes_[p].listen.fd(), EPOLLIN, p));
    // Told of room only while something is held: armed by hold(). Errors are always told, once.
    for (const UdpSocket& sender : planes_[p].senders)
      WEFT_CHECK(watch(sender.fd(), EPOLLONESHOT, kRoom | p));
  }
  WEFT_CHECK(watch(links_->fd(), EPOLLIN, kLinks));
  if (shm_ != nullptr) WEFT_CHECK(watch(shm_->fd(), EPOLLIN, kShm));
  return watch(wake_fd_, EPOLLIN, kWake);
}

void UdpWorld::abandon() {
  for (const Plane& plane : planes_) {
    close(plane.listen.fd());
    for (const UdpSocket& sender : plane.senders) close(sender.fd());
  }
  close(links_->fd());
  close(wake_fd_);
  close(epoll_fd_);
}

std::vector<world::Address> UdpWorld::addresses() const {
  std::vector<world::Address> out;
  for (const Plane& plane : planes_) out.push_back(world::Address::of(plane.address, process_));
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
  told_up_ = links_->up();
  for (std::uint32_t p = 0; p < planes_.size(); ++p) tell_port(p);
  return {};
}

void UdpWorld::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_fd_, &one, sizeof(one));  // full: awake anyway
}

// --- time --------------------------------------------------------------------------------------

void UdpWorld::tell_port(std::uint32_t plane) {
  node_->on_port(now_, static_cast<world::PortIndex>(plane),
                 {.up = (told_up_ >> plane & 1) != 0,
                  .receive_bytes = planes_[plane].listen.receive_bytes(),
                  .overflows = planes_[plane].overflow});
}

void UdpWorld::look_at_links() {
  links_->look();
  const auto changed = static_cast<world::PortMask>(told_up_ ^ links_->up());
  told_up_ = links_->up();
  for (std::uint32_t plane = 0; plane < planes_.size(); ++plane) {
    if ((changed >> plane & 1) == 0) continue;
    log(LogLevel::kWarn, "plane {} ({}) is {}", plane, text_of(planes_[plane].address),
        (told_up_ >> plane & 1) != 0 ? "up" : "down");
    tell_port(plane);
  }
}

// Takes what is there; until then it waits for something to come. True if anything came.
bool UdpWorld::look(Time sleep_until) {
  look_next_ = now_ + kLookEvery;
  std::array<epoll_event, world::kPortsMax + 8> ready;
  const auto room = static_cast<int>(ready.size());
  int count = 0;
  if (sleep_until > now_) {
    count = sleep_on(epoll_fd_, ready, sleep_until == kNever ? kForever : sleep_until - now_);
    now_ = clock();
  } else {
    count = epoll_wait(epoll_fd_, ready.data(), room, 0);  // a third of the price
  }
  bool moved = false;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t what = ready[static_cast<std::size_t>(i)].data.u32;
    if (what == kWake) {
      std::uint64_t woken = 0;
      [[maybe_unused]] const auto taken = read(wake_fd_, &woken, sizeof(woken));
      moved = true;
    } else if (what == kLinks) {
      look_at_links();
      moved = true;
    } else if (what == kShm) {
      shm_->look();
      moved = true;
    } else if ((what & kRoom) != 0) {
      if ((ready[static_cast<std::size_t>(i)].events & EPOLLERR) != 0) hear_refusals(what & 0xff);
      moved |= send_held(planes_[what & 0xff]);
    } else {
      moved |= receive(what, count == 1 ? busy_runs_ : kRunsWhenMany);
    }
  }
  if (shm_ != nullptr) shm_->tell_refusals(now_, *node_);
  return moved;
}

bool UdpWorld::look_at_deadline(Time due) {
  const Duration late = now_ > due && now_ - due > kLate ? now_ - due : Duration();
  last_pass_ = now_;
  if (node_->next_deadline() > now_) return false;
  node_->on_deadline(now_, late);
  return true;
}

// Where something came a moment ago, without asking everywhere: a look at a ring costs less than one
// at the clock, a look at one socket less than at all.
bool UdpWorld::look_where_it_came(Time plane_busy_until) {
  for (int i = 0; i < kRingLooks && shm_ != nullptr; ++i) {
    if (!shm_->receive(now_, *node_)) continue;
    ring_busy_until_ = now_ + kBusy;
    return true;
  }
  // Where single runs came, asking for more would cost a second look at the socket.
  for (int i = 0; i < kPlaneLooks && now_ < plane_busy_until; ++i) {
    if (receive(busy_plane_, busy_runs_)) return true;
  }
  return false;
}

// What came, by ring or socket, and what falls due. While rings are busy sockets are asked now and
// then only: the question costs more than a whole round trip over a ring.
bool UdpWorld::take(Time sleep_until) {
  // What was slept on purpose is not late.
  const Time due = std::max(last_pass_, sleep_until);
  // One that is about to sleep is told by the kernel: a look at a socket besides would be in vain.
  bool moved = look_where_it_came(sleep_until > now_ ? Time() : plane_busy_until_);
  if (moved) sleep_until = Time();
  const bool sleeps = sleep_until > now_ && (shm_ == nullptr || shm_->sleep());
  const bool busy = moved || now_ < ring_busy_until_ ||
                    (now_ < plane_busy_until_ && now_ < look_next_ - kLookEvery + kPlaneLookEvery);
  if (sleeps || now_ >= look_next_ || !busy) moved |= look(sleeps ? sleep_until : Time());
  if (sleeps && shm_ != nullptr) shm_->wake();
  return look_at_deadline(due) || moved;
}

bool UdpWorld::pass(Time slept_until) {
  WEFT_ASSERT(node_ != nullptr);
  now_ = clock();
  last_pass_ = std::max(last_pass_, std::min(slept_until, now_));
  const bool moved = take(Time());
  return transmit() || moved;
}

Time UdpWorld::sleep_until(Time limit) const {
  Time until = std::min(limit, node_->next_deadline());
  if (cap_ && cap_->opens_at() > now_) until = std::min(until, cap_->opens_at());
  return until;
}

// How long to look before going to sleep.
Duration UdpWorld::spin() const {
  const bool crowded = now_ < crowded_until_ && config_.spin < kSpinForever;
  return crowded ? Duration() : config_.spin;
}

bool UdpWorld::progress(Time limit) {
  WEFT_ASSERT(node_ != nullptr);
  Time start = kNever;
  for (;;) {
    now_ = clock();
    start = std::min(start, now_);
    bool moved = transmit();
    // Who never spins sleeps soon, and hears then what came.
    if (moved && spin() == Duration() && now_ - last_pass_ < kLookEvery) return true;
    const bool sleeps = !moved && now_ - start >= spin();
    moved |= take(sleeps ? sleep_until(limit) : Time());
    if (moved) return true;
    if (now_ >= limit) return false;
    // Whoever we wait for may need this core.
    if (now_ - start > kYieldAfter) {
      sched_yield();
      // Somebody else had it for long: there are more of us than cores, and spinning is in the way.
      if (clock() - now_ > kCrowdedGap) crowded_until_ = now_ + kCrowded;
    }
  }
}

bool UdpWorld::step(Time limit) {
  while (now_ < limit) progress(limit);
  transmit();
  return true;
}

CounterTable UdpWorld::counters() const {
  CounterTable table = {{"net.packets_sent", "packets", counters_.packets_sent},
                        {"net.packets_received", "packets", counters_.packets_received},
                        {"net.sends", "calls", counters_.sends},
                        {"net.receives", "calls", counters_.receives},
                        {"net.sends_held", "calls", counters_.sends_held},
                        {"net.drops_send", "packets", counters_.drops_send},
                        {"net.drops_host", "packets", counters_.drops_host},
                        {"net.refusals", "packets", counters_.refusals},
                        {"net.hellos_sent", "packets", counters_.hellos_sent},
                        {"net.waits_for_keys", "packets", counters_.waits_for_keys}};
  // Those that this layer gives; the node counts its own.
  const auto add = [&](std::string_view name, DropReason reason) {
    table.push_back({name, "packets", drops_[static_cast<std::size_t>(reason)]});
  };
  add("net.drop_too_short", DropReason::kTooShort);
  add("net.drop_bad_opcode", DropReason::kBadOpcode);
  add("net.drop_bad_version", DropReason::kBadVersion);
  add("net.drop_bad_header", DropReason::kBadHeader);
  add("net.drop_no_buffer", DropReason::kNoBuffer);
  add("net.drop_stale", DropReason::kStale);
  add("net.drop_no_session", DropReason::kNoSession);
  add("net.drop_forged", DropReason::kForged);
  add("net.drop_replayed", DropReason::kReplayed);
  if (shm_ != nullptr) {
    const CounterTable shared = shm_->counters();
    table.insert(table.end(), shared.begin(), shared.end());
  }
  return table;
}

}  // namespace weft::net
