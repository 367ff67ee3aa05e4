// ShortLock: for what is held over some tens of instructions and no system call: putting a write into
// a ring, taking completions out of one. Uncontended it is one exchange and one store, where a mutex
// is two calls; that is a twentieth of a small write.
//
// Not fair, not recursive. Who finds it taken looks for a moment, then gives the core away, so that a
// holder that lost its own gets on; then sleeps, because to yield does not help a holder of a lower
// scheduling class.
#pragma once

#include <sched.h>

#include <atomic>
#include <ctime>

namespace weft::device {

class ShortLock {
 public:
  void lock() {
    for (int looks = 0; taken_.exchange(true, std::memory_order_acquire); ++looks) {
      if (looks >= kYieldsMax) {
        const timespec nap{.tv_sec = 0, .tv_nsec = 50'000};
        nanosleep(&nap, nullptr);
      } else if (looks >= kLooksMax) {
        sched_yield();
      }
    }
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr int kLooksMax = 64, kYieldsMax = 128;
  std::atomic<bool> taken_{false};
};

}  // namespace weft::device
