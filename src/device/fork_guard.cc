#include "device/fork_guard.h"

#include <pthread.h>

#include <array>
#include <atomic>

#include "net/udp_world.h"

namespace weft::device {
namespace {

struct Guarded {
  net::UdpWorld* world = nullptr;
  std::mutex* lock = nullptr;
};
// This array is never destroyed: a fork may happen while the program exits.
std::array<Guarded, ForkGuard::kWorldsMax>& guarded() {
  static auto* const all = new std::array<Guarded, ForkGuard::kWorldsMax>;
  return *all;
}
std::mutex& guarded_lock() {
  static auto* const lock = new std::mutex;
  return *lock;
}

void before_fork() {
  guarded_lock().lock();
  for (const Guarded& one : guarded()) {
    if (one.lock != nullptr) one.lock->lock();
  }
}

void after_fork() {
  for (const Guarded& one : guarded()) {
    if (one.lock != nullptr) one.lock->unlock();
  }
  guarded_lock().unlock();
}

void in_child() {
  for (Guarded& one : guarded()) {
    if (one.world == nullptr) continue;
    one.world->abandon();
    one.lock->unlock();
    one = {};
    fork_guard::forked_child = true;
  }
  guarded_lock().unlock();
}

}  // namespace

ForkGuard::ForkGuard(net::UdpWorld& world, std::mutex& lock) {
  [[maybe_unused]] static const int registered = pthread_atfork(before_fork, after_fork, in_child);
  const std::lock_guard hold(guarded_lock());
  for (int i = 0; i < kWorldsMax && slot_ < 0; ++i) {
    Guarded& one = guarded()[static_cast<std::size_t>(i)];
    if (one.world != nullptr) continue;
    one = {.world = &world, .lock = &lock};
    slot_ = i;
  }
}

ForkGuard::~ForkGuard() {
  if (slot_ < 0) return;
  const std::lock_guard hold(guarded_lock());
  guarded()[static_cast<std::size_t>(slot_)] = {};
}

}  // namespace weft::device
