// Waiter: how a loop waits after a pass that found no work. It spins, so that an answer that is
// near is seen at once. After a while it yields the core between passes, because the process that
// it waits for may need this core. Then it sleeps.
//
// A yield that lasts long shows that this host has more busy threads than cores. For a while the
// loop then does not spin, because its spinning would delay the thread that it waits for.
//
//   waiter.start(now);
//   for (;; now = waiter.clock()) {
//     if (pass(now)) {
//       waiter.start(now);
//     } else if (waiter.may_sleep(now)) {
//       waiter.sleep(descriptors, next_deadline());
//     } else {
//       waiter.yield(now);
//     }
//   }
//
// Another thread ends a sleep through one of the descriptors; see WakeEvent. Everything but
// clock(), yield() and sleep() is arithmetic on the times that are given. One thread.
#pragma once

#include <poll.h>

#include <span>

#include "base/time.h"

namespace weft::os {

// How long a thread spins that does nothing but wait for the network.
inline constexpr Duration kSpin = Duration::us(200);
// The same of a thread beside a program that needs the cores too.
inline constexpr Duration kSpinBesideProgram = Duration::us(50);
// A loop with that much to spin never sleeps, also when the cores are oversubscribed.
inline constexpr Duration kSpinForever = Duration::s(1);
// A loop that is idle for longer yields the core between passes.
inline constexpr Duration kYieldAfter = Duration::us(20);

// How long a loop of this process spins, by default: kSpin, or 0 under a CPU quota, because time
// spent on spinning is then missing later.
Duration usual_spin();

struct WaiterConfig {
  // How long a loop is idle before it sleeps.
  Duration spin = kSpin;
  Duration yield_after = kYieldAfter;
  // The same as `spin` while the cores are oversubscribed; the loop then yields after each pass. 0
  // suits two processes that wait for each other: a sleep hands the core to the other at once.
  // Where more take turns, as in a ring of ranks, some 50 us of yields save most sleeps.
  Duration spin_oversubscribed{};
  // The loop is back this long before the time that it sleeps for: to spin until then is exact to
  // microseconds.
  Duration back_early{};
  // Time 0 of all times, by the system's monotonic clock.
  Time epoch{};
};

class Waiter {
 public:
  explicit Waiter(const WaiterConfig& config = {}) : config_(config) {}

  Time clock() const;

  // The loop is idle from now on: it found work, or begins to wait.
  void start(Time now) { idle_since_ = now; }
  // How long the loop is idle, as things stand, before it sleeps.
  Duration spin(Time now) const {
    return gives_way(now) ? config_.spin_oversubscribed : config_.spin;
  }
  bool may_sleep(Time now) const { return now - idle_since_ >= spin(now); }
  // This host has more busy threads than cores, as a yield has shown.
  bool is_oversubscribed(Time now) const { return now < oversubscribed_until_; }

  // After a pass that found no work, and no sleep: yields the core if the loop is idle for long
  // enough. `since`: a time after which this thread only worked, such as the begin of the pass.
  // True: the cores are oversubscribed, as this yield shows.
  bool yield(Time since);
  // The decision of yield(), by its times: this thread ran again at `back`.
  bool note_yield(Time since, Time back);

  // Sleeps until a descriptor is ready, as ppoll() does, or until `until`; kNever: without limit.
  // True: a descriptor is ready.
  bool sleep(std::span<pollfd> descriptors, Time until) const;

 private:
  bool gives_way(Time now) const { return is_oversubscribed(now) && config_.spin < kSpinForever; }
  bool may_yield(Time now) const {
    return gives_way(now) || now - idle_since_ >= config_.yield_after;
  }

  WaiterConfig config_;
  Time idle_since_, oversubscribed_until_;
};

}  // namespace weft::os
