#include "device/fork_guard.h"

#include <pthread.h>

#include <array>
#include <atomic>

#include "net/udp_world.h"

namespace weft::device {
namespace {

// Never destroyed, and read in a child of which only this thread is left: no lock.
std::array<std::atomic<net::UdpWorld*>, ForkGuard::kWorldsMax> worlds{};

void in_child() {
  for (auto& world : worlds) {
    net::UdpWorld* const ours = world.exchange(nullptr);
    if (ours == nullptr) continue;
    ours->abandon();
    fork_guard::forked_child = true;
  }
}

}  // namespace

ForkGuard::ForkGuard(net::UdpWorld& world) {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, in_child);
  for (int i = 0; i < kWorldsMax && slot_ < 0; ++i) {
    net::UdpWorld* expected = nullptr;
    if (worlds[static_cast<std::size_t>(i)].compare_exchange_strong(expected, &world)) slot_ = i;
  }
}

ForkGuard::~ForkGuard() {
  if (slot_ >= 0) worlds[static_cast<std::size_t>(slot_)] = nullptr;
}

}  // namespace weft::device
