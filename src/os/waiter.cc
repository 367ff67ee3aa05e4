#include "os/waiter.h"

#include <sched.h>

#include <algorithm>

#include "os/clock.h"
#include "os/cpu_quota.h"
#include "os/cpus.h"

namespace weft::os {
namespace {

// A longer yield means that another thread had the core: more threads are busy than there are
// cores.
constexpr Duration kOtherHadCore = Duration::us(30);
// How long one long yield counts as evidence of oversubscribed cores.
constexpr Duration kOversubscribedFor = Duration::ms(20);

}  // namespace

Duration usual_spin() {
  const std::optional<double> quota = cpu_quota();
  return quota && *quota < static_cast<double>(std::max<std::size_t>(own_cpus().size(), 1))
             ? Duration()
             : kSpin;
}

Time Waiter::clock() const { return clock_now() - config_.epoch.since_start(); }

bool Waiter::yield(Time since) {
  if (!may_yield(since)) return false;
  sched_yield();
  return note_yield(since, clock());
}

bool Waiter::note_yield(Time since, Time back) {
  if (back - since <= kOtherHadCore) return false;
  oversubscribed_until_ = since + kOversubscribedFor;
  return true;
}

bool Waiter::sleep(std::span<pollfd> descriptors, Time until) const {
  timespec timeout{};
  if (until != kNever) {
    const std::int64_t ns = std::max<std::int64_t>((until - clock() - config_.back_early).ns(), 0);
    timeout = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }
  return ppoll(descriptors.data(), descriptors.size(), until == kNever ? nullptr : &timeout,
               nullptr) > 0;
}

}  // namespace weft::os
