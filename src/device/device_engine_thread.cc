// DeviceEngine: its thread, which drives the device while no program polls.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "device/device_engine.h"
#include "os/cpus.h"
#include "os/log.h"
#include "os/waiter.h"

namespace weft::device {
namespace {

// The longest nap, in units of poll_gap. The end of each nap costs a polling program some
// microseconds, so naps grow up to this length.
constexpr std::int64_t kNapGapsMax = 4;
// How often a sleeping thread looks for a change by a controller: such a change does not wake it.
constexpr Duration kControllerEvery = Duration::ms(20);

}  // namespace

void DeviceEngine::run() {
  pthread_setname_np(pthread_self(), config_.name.substr(0, 15).c_str());
  prctl(PR_SET_TIMERSLACK, 1000);  // so that naps do not take longer than requested
  if (!config_.cpus.empty()) {
    if (const auto moved = os::run_on(config_.cpus); !moved)
      os::log(os::LogLevel::kWarn, "{}: {}", config_.name, moved.error().message);
  }
  os::Waiter waiter({.spin = std::min(config_.world.spin, os::kSpinBesideProgram),
                     .yield_after = Duration(),
                     .epoch = config_.world.epoch});
  waiter.start(waiter.clock());
  Duration gap = config_.poll_gap;
  while (!stop_) {
    if (polled_) {
      end_sleep();
      nap(gap);
      gap = std::min(gap * 2, config_.poll_gap * kNapGapsMax);
      continue;
    }
    gap = config_.poll_gap;
    lock_.lock();
    const bool moved = drive();
    if (sleeps_until_ != Time()) world_->end_wait();
    sleeps_until_ = Time();
    const Time now = world_->now();
    if (moved) waiter.start(now);
    bool sleeps = !moved && waiter.may_sleep(now);
    const Time until = world_->sleep_until(now + kControllerEvery);
    if (sleeps) sleeps = world_->prepare_wait();
    if (sleeps) sleeps_until_ = until;
    unlock_after_posts();
    if (sleeps) {
      if (!stop_ && !node_->has_posts()) sleep(waiter, until);
    } else if (!moved) {
      waiter.yield(waiter.clock());
    }
  }
}

// Called when a program began to poll while the thread slept: no packets need to wake the thread
// now. Only the thread writes sleeps_until_.
void DeviceEngine::end_sleep() {
  if (sleeps_until_ == Time()) return;
  lock_.lock();
  world_->end_wait();
  sleeps_until_ = Time();
  unlock_after_posts();
}

void DeviceEngine::nap(Duration gap) {
  const std::uint64_t seen = polls_.load(std::memory_order_relaxed);
  {
    std::unique_lock guard(nap_lock_);
    if (!stop_ && polled_) nap_over_.wait_for(guard, std::chrono::nanoseconds(gap.ns()));
  }
  if (polls_.load(std::memory_order_relaxed) == seen) polled_ = false;
}

void DeviceEngine::sleep(const os::Waiter& waiter, Time until) const {
  pollfd what{.fd = world_->wait_fd(), .events = POLLIN, .revents = 0};
  waiter.sleep({&what, 1}, until);
}

}  // namespace weft::device
