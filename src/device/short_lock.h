// ShortLock: a lock for some tens of instructions without a system call: putting a write into a
// ring, taking completions out of one. Without contention it costs one exchange and one store. A
// mutex costs two calls, which is a twentieth of a small write.
//
// Not fair, not recursive. A thread that finds it taken spins for a moment. Then it yields the
// core, so that a holder that was preempted can go on. Then it sleeps, because a yield does not
// help a holder of a lower scheduling class.
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
