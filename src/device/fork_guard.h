// A forked child has the memory of its parent's devices, but neither their threads nor a right to
// their sockets. Every call on such a device fails with EPERM in the child. The descriptors are
// closed there, so that the slot on the network stays the parent's alone. A child of a process
// without an open device is like any other process.
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

// While this lives, a fork abandons the world in the child. A fork first takes the lock under which
// the world is changed, so that the child finds it consistent. Bounded: a process has at most
// kWorldsMax open worlds; is_set() says if there are more.
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
