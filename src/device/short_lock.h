// ShortLock: for what is held over some tens of instructions and no system call: putting a write into
// a ring, taking completions out of one. Uncontended it is one exchange and one store, where a mutex
// is two calls; that is a twentieth of a small write.
//
// Not fair, not recursive. Who finds it taken looks for a moment, then gives the core away, so that a
// holder that lost its own gets on.
#pragma once

#include <sched.h>

#include <atomic>

namespace weft::device {

class ShortLock {
 public:
  void lock() {
    for (int looks = 0; taken_.exchange(true, std::memory_order_acquire); ++looks) {
      if (looks >= kLooksMax) sched_yield();
    }
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr int kLooksMax = 64;
  std::atomic<bool> taken_{false};
};

}  // namespace weft::device
