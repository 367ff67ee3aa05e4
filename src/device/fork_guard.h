// A forked child has the memory of its parent's devices, but neither their threads nor a right to
// their sockets: every call there fails with EPERM, and the descriptors are let go, so that the slot
// on the network stays the parent's alone. A child of a process that had no device open is like any
// other process.
#pragma once

#include <atomic>
#include <mutex>

namespace weft::net {
class UdpWorld;
}

namespace weft::device {

namespace fork_guard {
inline std::atomic<bool> forked_child{false};
}
inline bool is_forked_child() { return fork_guard::forked_child.load(std::memory_order_relaxed); }

// While it lives, a fork lets go of this world in the child. A fork waits for the lock that the world
// is changed under, so that the child finds it whole. Bounded: a process has at most kWorldsMax
// worlds open, and is told if it has more.
class ForkGuard {
 public:
  static constexpr int kWorldsMax = 64;
  ForkGuard(net::UdpWorld& world, std::mutex& lock);
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  // False: there were too many.
  bool is_set() const { return slot_ >= 0; }

 private:
  int slot_ = -1;
};

}  // namespace weft::device
