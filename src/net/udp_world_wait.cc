// UdpWorld, waiting: arrivals are either announced by the kernel (epoll) or polled for.
//
// The kernel notifies the watcher of a socket at each packet that arrives, in the sender's time. So
// the planes are watched only while the world sleeps and for a moment after. A world that has been
// awake for longer polls them (docs/decisions/0027).
#include <poll.h>
#include <sys/epoll.h>

#include <array>
#include <bit>

#include "base/assert.h"
#include "net/udp_world.h"
#include "os/interfaces.h"
#include "os/log.h"
#include "os/system_error.h"

namespace weft::net {
namespace {

// After being awake for so long the world polls. A shorter time would cost worlds that sleep often.
constexpr Duration kAwake = Duration::ms(1);

}  // namespace

void UdpWorld::wake() { wake_event_->signal(); }

// --- watched descriptors -----------------------------------------------------------------------

Result<void> UdpWorld::watch(int fd, std::uint32_t events, std::uint32_t what) {
  epoll_event event{};
  event.events = events;
  event.data.u32 = what;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) return os::system_error("epoll_ctl");
  return {};
}

Result<void> UdpWorld::watch_all() {
  asked_.push_back({.fd = epoll_fd_, .events = POLLIN, .revents = 0});
  for (const Plane& plane : planes_)
    asked_.push_back({.fd = plane.listen.fd(), .events = POLLIN, .revents = 0});
  for (const Plane& plane : planes_) {
    if (plane.tunnel)
      asked_.push_back({.fd = plane.tunnel->receive_fd(), .events = POLLIN, .revents = 0});
  }
  WEFT_ASSERT((asked_.size() - 1) % planes_.size() == 0);  // all planes have a tunnel, or none has
  WEFT_CHECK(watch_planes());
  WEFT_CHECK(watch(links_->fd(), EPOLLIN, kLinks));
  WEFT_CHECK(watch(alarm_->fd(), EPOLLIN, kAlarm));
  if (shm_ != nullptr) WEFT_CHECK(watch(shm_->fd(), EPOLLIN, kShm));
  return watch(wake_event_->fd(), EPOLLIN, kWake);
}

// The plane of a socket in asked_.
std::uint32_t UdpWorld::plane_asked(std::size_t index) const {
  return static_cast<std::uint32_t>((index - 1) % planes_.size());
}

Result<void> UdpWorld::watch_planes() {
  if (planes_watched_) return {};
  for (std::size_t i = 1; i < asked_.size(); ++i) {
    const auto watched = watch(asked_[i].fd, EPOLLIN, plane_asked(i));
    if (watched) continue;
    unwatch_planes();
    return watched.error();
  }
  planes_watched_ = true;
  return {};
}

void UdpWorld::unwatch_planes() {
  for (std::size_t i = 1; i < asked_.size(); ++i)
    epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, asked_[i].fd, nullptr);
  planes_watched_ = false;
}

bool UdpWorld::prepare_wait() {
  waits_ = false;
  waited_at_ = now_;
  if (const auto watched = watch_planes(); !watched) {
    if (!said_unwatched_)
      os::log(os::LogLevel::kWarn, "{}; this process never sleeps (said once)",
              watched.error().message);
    said_unwatched_ = true;
    return false;
  }
  waits_ = shm_ == nullptr || shm_->sleep();
  return waits_;
}

void UdpWorld::end_wait() {
  waits_ = false;
  waited_at_ = clock();
  if (shm_ != nullptr) shm_->wake();
}

// --- arrivals ----------------------------------------------------------------------------------

void UdpWorld::look_at_links() {
  links_->look();
  const auto changed = static_cast<world::PortMask>(told_up_ ^ links_->up());
  told_up_ = links_->up();
  for (std::uint32_t plane = 0; plane < planes_.size(); ++plane) {
    if ((changed >> plane & 1) == 0) continue;
    os::log(os::LogLevel::kWarn, "plane {} ({}) is {}", plane, os::text_of(planes_[plane].address),
            (told_up_ >> plane & 1) != 0 ? "up" : "down");
    tell_port(plane);
  }
}

// Handles the events that epoll has; with kSleeps it waits until there is one.
bool UdpWorld::hear(Patience patience) {
  const bool sleeps = patience == Patience::kSleeps;
  std::array<epoll_event, world::kPortsMax + 8> ready;
  const auto room = static_cast<int>(ready.size());
  const int count = epoll_wait(epoll_fd_, ready.data(), room, sleeps ? -1 : 0);
  if (sleeps) now_ = clock();
  bool moved = false;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t what = ready[static_cast<std::size_t>(i)].data.u32;
    if (what == kWake) {
      wake_event_->clear();
      moved = true;
    } else if (what == kAlarm) {
      alarm_->rang();
    } else if (what == kLinks) {
      look_at_links();
      moved = true;
    } else if (what == kShm) {
      shm_->look();
      moved = true;
    } else if ((what & kRoom) != 0) {
      // EPOLLERR is reported as long as there is an ICMP error, with room or without.
      if ((ready[static_cast<std::size_t>(i)].events & EPOLLERR) != 0) hear_refusals(what & 0xff);
      moved |= send_held(planes_[what & 0xff]);
    } else if ((what & kHost) != 0) {
      moved |= receive_for_host(what & 0xff);
    } else {
      moved |= receive(what, count == 1 ? busy_runs_ : kRunsWhenMany);
    }
  }
  return moved;
}

// Polls all of asked_ in one system call.
bool UdpWorld::ask() {
  if (poll(asked_.data(), asked_.size(), 0) <= 0) return false;
  std::uint32_t ready = 0;
  for (std::size_t i = 1; i < asked_.size(); ++i) {
    if (asked_[i].revents != 0) ready |= 1u << plane_asked(i);
  }
  bool moved = asked_[0].revents != 0 && hear(Patience::kNone);
  const std::size_t runs_max = std::has_single_bit(ready) ? busy_runs_ : kRunsWhenMany;
  for (; ready != 0; ready &= ready - 1)
    moved |= receive(static_cast<std::uint32_t>(std::countr_zero(ready)), runs_max);
  return moved;
}

// Handles what has arrived. Sleeps until something arrives if `sleep_until` is in the future. True
// if anything arrived.
bool UdpWorld::look(Time sleep_until) {
  look_next_ = now_ + kLookEvery;
  const bool sleeps = sleep_until > now_;
  if (sleeps && sleep_until != kNever) alarm_->ring_by(sleep_until + config_.epoch.since_start());
  if (planes_watched_ && !waits_ && now_ - waited_at_ >= kAwake) unwatch_planes();
  WEFT_ASSERT(!sleeps || planes_watched_);
  const bool moved = planes_watched_ ? hear(sleeps ? Patience::kSleeps : Patience::kNone) : ask();
  if (shm_ != nullptr) shm_->tell_refusals(now_, *node_);
  return moved;
}

}  // namespace weft::net
