// DeviceEngine, the thread: drives the device while no program polls.
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include "device/device_engine.h"
#include "os/clock.h"
#include "os/cpus.h"
#include "os/log.h"

namespace weft::device {
namespace {

// The longest spin without traffic before the thread sleeps, because applications need the cores
// too.
constexpr Duration kSpinMax = Duration::us(50);
// If sched_yield() lasts longer than kCrowdedGap, the cores are oversubscribed: for kCrowded the
// thread does not spin.
constexpr Duration kCrowdedGap = Duration::us(30), kCrowded = Duration::ms(20);
// Each nap that ends costs a polling program some microseconds, so the naps grow up to this many
// gaps.
constexpr std::int64_t kNapGapsMax = 4;
// A change by a controller does not wake the thread, so a sleeping thread looks for one this often.
constexpr Duration kControllerEvery = Duration::ms(20);

}  // namespace

void DeviceEngine::run() {
  pthread_setname_np(pthread_self(), config_.name.substr(0, 15).c_str());
  prctl(PR_SET_TIMERSLACK, 1000);  // so that a nap is not longer than asked for
  if (!config_.cpus.empty()) {
    if (const auto moved = os::run_on(config_.cpus); !moved)
      os::log(os::LogLevel::kWarn, "{}: {}", config_.name, moved.error().message);
  }
  const Duration spin = std::min(config_.world.spin, kSpinMax);
  Time moved_at = os::clock_now(), crowded_until;
  Duration gap = config_.poll_gap;
  while (!stop_) {
    if (polled_) {
      rise();
      nap(gap);
      gap = std::min(gap * 2, config_.poll_gap * kNapGapsMax);
      continue;
    }
    gap = config_.poll_gap;
    lock_.lock();
    const bool moved = pass();
    if (sleeps_until_ != Time()) world_->end_wait();
    sleeps_until_ = Time();
    const Time now = world_->now();
    if (moved) moved_at = now;
    bool sleeps = !moved && (now - moved_at >= spin || now < crowded_until);
    const Time until = world_->sleep_until(now + kControllerEvery);
    if (sleeps) sleeps = world_->prepare_wait();
    if (sleeps) sleeps_until_ = until;
    leave();
    if (sleeps) {
      if (!stop_ && !node_->has_posts()) sleep(until);
    } else if (!moved) {
      const Time before = os::clock_now();
      sched_yield();
      // Other threads had the core for long: the cores are oversubscribed, and spinning would delay
      // them.
      if (os::clock_now() - before > kCrowdedGap) crowded_until = now + kCrowded;
    }
  }
}

// A program has begun to poll while the thread slept, so wake-ups of the thread are not needed.
// Only the thread writes sleeps_until_.
void DeviceEngine::rise() {
  if (sleeps_until_ == Time()) return;
  lock_.lock();
  world_->end_wait();
  sleeps_until_ = Time();
  leave();
}

void DeviceEngine::nap(Duration gap) {
  const std::uint64_t seen = polls_.load(std::memory_order_relaxed);
  {
    std::unique_lock guard(nap_lock_);
    if (!stop_ && polled_) nap_over_.wait_for(guard, std::chrono::nanoseconds(gap.ns()));
  }
  if (polls_.load(std::memory_order_relaxed) == seen) polled_ = false;
}

void DeviceEngine::sleep(Time until) const {
  const std::int64_t ns = std::max<std::int64_t>((until - os::clock_now()).ns(), 0);
  const timespec timeout{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  pollfd what{.fd = world_->wait_fd(), .events = POLLIN, .revents = 0};
  ppoll(&what, 1, until == kNever ? nullptr : &timeout, nullptr);
}

}  // namespace weft::device
