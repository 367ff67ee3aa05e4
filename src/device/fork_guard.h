// Handling of fork(). The child has the memory of its parent's devices, but neither their threads
// nor a right to their sockets. In the child every call on such a device fails with EPERM. The
// child closes the descriptors, so that only the parent remains on the network. A child of a
// process without an open device is like any other process.
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

// While a ForkGuard lives, a child of fork() abandons `world`. A fork first takes `lock`, under
// which the world is changed, so that the child finds the world consistent. Bounded: a process has
// at most kWorldsMax open worlds; is_set() is false for any further world.
class ForkGuard {
 public:
  static constexpr int kWorldsMax = 64;
  ForkGuard(net::UdpWorld& world, std::mutex& lock);
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  // False if the process has too many open worlds.
  bool is_set() const { return slot_ >= 0; }

 private:
  int slot_ = -1;
};

}  // namespace weft::device
