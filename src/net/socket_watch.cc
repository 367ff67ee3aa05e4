#include "net/socket_watch.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/log.h"
#include "os/system_error.h"

namespace weft::net {
namespace {

// A world that has been awake this long polls instead of watching. A shorter time would be
// expensive for worlds that sleep often.
constexpr Duration kAwake = Duration::ms(1);
// Event data of the alarm. The data of other events holds their source and plane.
constexpr std::uint32_t kAlarm = 0xffff'ffff;

std::uint32_t word_of(const SocketWatch::Event& event) {
  return static_cast<std::uint32_t>(event.source) << 8 | event.plane;
}

Result<void> watch(int epoll, int fd, std::uint32_t events, std::uint32_t word) {
  epoll_event event{};
  event.events = events;
  event.data.u32 = word;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) return os::system_error("epoll_ctl");
  return {};
}

}  // namespace

Result<std::unique_ptr<SocketWatch>> SocketWatch::open() {
  std::unique_ptr<SocketWatch> out(new SocketWatch());
  out->epoll_ = os::FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!out->epoll_.is_open()) return os::system_error("epoll_create1");
  WEFT_TRY(out->alarm_, os::Alarm::open());
  WEFT_TRY(out->wake_, os::WakeEvent::open());
  out->polled_.push_back({.fd = out->fd(), .events = POLLIN, .revents = 0});
  out->plane_of_.push_back(0);
  WEFT_CHECK(watch(out->fd(), out->alarm_->fd(), EPOLLIN, kAlarm));
  WEFT_CHECK(out->add(out->wake_->fd(), {.source = Source::kWake}));
  return out;
}

Result<void> SocketWatch::add_plane(std::uint8_t plane, int fd) {
  polled_.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  plane_of_.push_back(plane);
  watches_planes_ = true;
  return add(fd, {.source = Source::kPlane, .plane = plane});
}

Result<void> SocketWatch::add(int fd, const Event& event) {
  const bool awaits_room = event.source == Source::kPlaneHasRoom;
  return watch(epoll_.get(), fd, awaits_room ? EPOLLOUT : EPOLLIN, word_of(event));
}

void SocketWatch::remove(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

Result<void> SocketWatch::watch_planes() {
  if (watches_planes_) return {};
  for (std::size_t i = 1; i < polled_.size(); ++i) {
    const auto watched = add(polled_[i].fd, {.source = Source::kPlane, .plane = plane_of_[i]});
    if (watched) continue;
    unwatch_planes();
    return watched.error();
  }
  watches_planes_ = true;
  return {};
}

void SocketWatch::unwatch_planes() {
  for (std::size_t i = 1; i < polled_.size(); ++i) remove(polled_[i].fd);
  watches_planes_ = false;
}

bool SocketWatch::prepare_wait(Time now) {
  waits_ = false;
  waited_at_ = now;
  if (const auto watched = watch_planes(); !watched) {
    if (!is_logged_)
      os::log(os::LogLevel::kWarn, "{}; this process never sleeps (said once)",
              watched.error().message);
    is_logged_ = true;
    return false;
  }
  waits_ = true;
  return true;
}

void SocketWatch::end_wait(Time now) {
  waits_ = false;
  waited_at_ = now;
}

bool SocketWatch::watches_planes(Time now) {
  if (watches_planes_ && !waits_ && now - waited_at_ >= kAwake) unwatch_planes();
  return watches_planes_;
}

std::span<const SocketWatch::Event> SocketWatch::read_events(int timeout) {
  std::array<epoll_event, world::kPortsMax + 8> ready;
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), timeout);
  std::size_t used = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<std::size_t>(i)];
    if (event.data.u32 == kAlarm) {
      alarm_->rang();
      continue;
    }
    const auto source = static_cast<Source>(event.data.u32 >> 8);
    if (source == Source::kWake) wake_->clear();
    events_[used++] = {.source = source,
                       .plane = static_cast<std::uint8_t>(event.data.u32 & 0xff),
                       .error = (event.events & EPOLLERR) != 0};
  }
  return std::span(events_).first(used);
}

std::span<const SocketWatch::Event> SocketWatch::sleep(Time until) {
  WEFT_ASSERT(watches_planes_);
  if (until != kNever) alarm_->ring_by(until);
  return read_events(-1);
}

SocketWatch::Polled SocketWatch::poll_planes() {
  Polled out;
  if (poll(polled_.data(), polled_.size(), 0) <= 0) return out;
  out.others = polled_[0].revents != 0;
  for (std::size_t i = 1; i < polled_.size(); ++i) {
    if (polled_[i].revents != 0) out.planes |= 1u << plane_of_[i];
  }
  return out;
}

void SocketWatch::abandon() const {
  close(alarm_->fd());
  close(wake_->fd());
  close(fd());
}

}  // namespace weft::net
