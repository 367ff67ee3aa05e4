// ShortLock: a lock that protects some tens of instructions without a system call in them, such as
// putting a write into a ring. Without contention it costs one exchange and one store. A mutex
// costs two function calls, which is a twentieth of the time of a small write.
//
// Not fair, not recursive. A thread that finds the lock taken first spins for a moment. Next it
// yields the core, so that a preempted holder can continue. At last it sleeps, because yielding
// does not help a holder of a lower scheduling class.
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
