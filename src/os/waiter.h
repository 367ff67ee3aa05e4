// Waiter: how a loop waits after a pass that found no work. First it spins, so that an answer which
// is about to arrive is seen at once. After a while it yields the core between passes, because the
// process that it waits for may need the core. Then it sleeps.
//
// A yield that takes long shows that this host has more busy threads than cores. Then the loop does
// not spin for a while, because its spinning would delay the thread that it waits for.
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
// Another thread ends a sleep through one of the descriptors; see WakeEvent. Only clock(), yield()
// and sleep() use the system; the other functions compute from their arguments. One thread.
#pragma once

#include <poll.h>

#include <span>

#include "base/time.h"

namespace weft::os {

// How long a thread spins whose only task is to wait for the network.
inline constexpr Duration kSpin = Duration::us(200);
// How long a thread spins beside a program that needs the cores too.
inline constexpr Duration kSpinBesideProgram = Duration::us(50);
// A loop with this spin time never sleeps, even when the cores are oversubscribed.
inline constexpr Duration kSpinForever = Duration::s(1);
// A loop that has been idle for longer yields the core between passes.
inline constexpr Duration kYieldAfter = Duration::us(20);

// The default spin time of this process: kSpin, or 0 under a CPU quota, because spinning would use
// up time that is needed later.
Duration usual_spin();

struct WaiterConfig {
  // How long a loop is idle before it may sleep.
  Duration spin = kSpin;
  Duration yield_after = kYieldAfter;
  // Replaces `spin` while the cores are oversubscribed; the loop then yields after each pass. 0
  // suits two processes that wait for each other: a sleep hands the core to the other at once.
  // Where more take turns, as in a ring of ranks, some 50 us of yields save most sleeps.
  Duration spin_oversubscribed{};
  // sleep() returns this long before its `until`, because spinning until then is exact to
  // microseconds.
  Duration back_early{};
  // Time 0 of all times here, as a time of the monotonic clock.
  Time epoch{};
};

class Waiter {
 public:
  explicit Waiter(const WaiterConfig& config = {}) : config_(config) {}

  Time clock() const;

  // The loop found work, or begins to wait: its idle time starts at `now`.
  void start(Time now) { idle_since_ = now; }
  // How long the loop must now be idle before it may sleep: `spin` or `spin_oversubscribed`.
  Duration spin(Time now) const {
    return gives_way(now) ? config_.spin_oversubscribed : config_.spin;
  }
  bool may_sleep(Time now) const { return now - idle_since_ >= spin(now); }
  // This host has more busy threads than cores, as a yield has shown.
  bool is_oversubscribed(Time now) const { return now < oversubscribed_until_; }

  // To be called after a pass that found no work. Yields the core if the loop has been idle for
  // long enough. `since`: a time from which on this thread only worked, such as the begin of the
  // pass. True: this yield shows that the cores are oversubscribed.
  bool yield(Time since);
  // The evaluation of a yield: the thread worked from `since` on, and ran again at `back`.
  bool note_yield(Time since, Time back);

  // Sleeps until a descriptor is ready, as ppoll() does, or until the time `until` (kNever: without
  // limit). True: a descriptor is ready.
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
