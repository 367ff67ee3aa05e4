// DeviceEngine: one device in this process. It has the sockets, the registered memory, the
// endpoint, and a thread that drives them while no program polls.
//
// One lock protects the device; the clock is read after the lock is taken. A program that polls
// drives the device, and meanwhile the thread sleeps. The thread takes over 50 to 200 us after the
// last poll (EngineConfig::poll_gap), or at once if the program waits for an event. A program may
// poll its own memory and never call us: then the thread drives the device.
//
// Posting never waits for the lock: a post goes into a ring of its QP. If the lock is free, the
// posting thread drives the device once; otherwise the thread that holds the lock processes the
// post before it unlocks.
//
// QueuePair (queue_pair.h) makes and changes QPs; its code runs under the lock, through
// with_lock().
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "control/ctl_agent.h"
#include "device/async_events.h"
#include "device/device_node.h"
#include "device/fork_guard.h"
#include "net/host_memory.h"
#include "net/udp_world.h"
#include "os/clock.h"
#include "os/waiter.h"
#include "transport/endpoint.h"

namespace weft::device {

// Bounds of one device, for all contexts of this process together.
struct EngineLimits {
  std::uint32_t qps_max = 2048;  // a power of two
  std::uint32_t regions_max = 65'536;
  // writes that the endpoint holds; further writes wait in their QPs
  std::uint32_t sends_max = 16'384;
  std::uint32_t receives_max = 114'688;
  std::uint32_t evs_per_qp = 64;
  std::uint32_t psn_blocks_max = 16'384;  // blocks of 64 PSNs, for all QPs together
};

struct EngineConfig {
  std::string name = "weft0";
  net::UdpWorldConfig world{};
  // Connecting a QP fails if its peer is not reachable over shared memory.
  bool must_share_memory = false;
  std::uint32_t burst = 15;
  // CPUs for the thread. Empty: the CPUs of the program's thread that opens the device.
  std::vector<std::uint32_t> cpus{};
  // if nobody polls for this long, the thread drives the device
  Duration poll_gap = Duration::us(50);
  EngineLimits limits{};
};

class DeviceEngine {
 public:
  // Errors: kInvalid; kExhausted (too many processes of this host use the network); kBusy (only one
  // process may, and another one does); kUnsupported; kSystem.
  static Result<std::unique_ptr<DeviceEngine>> open(const EngineConfig& config);
  ~DeviceEngine();
  DeviceEngine(const DeviceEngine&) = delete;
  DeviceEngine& operator=(const DeviceEngine&) = delete;

  const EngineConfig& config() const { return config_; }
  const std::vector<world::Address>& addresses() const { return addresses_; }
  const std::vector<fabric::Ev>& evs() const { return evs_; }
  // The payload of the largest packet that may be sent or received, over planes or shared memory.
  std::uint32_t payload_max() const {
    return world_->has_shared_memory() ? std::uint32_t{net::kShmPayloadMax} : config_.world.mtu;
  }

  // The most endpoint requests in flight: one batch, since asks_lock() allows one batch at a time.
  static constexpr std::uint32_t kAsksMax = 256;
  std::mutex& asks_lock() { return asks_lock_; }

  // The largest payload that the planes to a peer carry, as UdpWorld::payload_to. The result is
  // reused for a short time, so that connecting many QPs asks the kernel once. REQUIRES the lock.
  std::uint32_t payload_to(Time now, std::span<const world::Address> peer);

  // --- work: may be called from any thread
  void submit(DeviceQp& qp);
  // For posted receives. They are processed before the next datagram, so the device need not be
  // driven now.
  void submit_receives(DeviceQp& qp) { node_->submit(qp); }
  // Drives the network once. Returns at once if another thread is driving it.
  void poll() {
    count_poll();
    drive_if_free(NextCall::kAtOnce);
  }
  // The program polled and took a completion without driving the network; it will poll again soon.
  // Every 16th call drives the network: a program that always finds a completion would otherwise
  // never drive it.
  void note_poll() {
    if (count_poll() % kDriveEvery == 0) drive_if_free(NextCall::kAtOnce);
  }
  // As poll(), for a caller that will not poll again soon.
  void poll_once() { drive_if_free(NextCall::kLater); }
  // The polling program now waits for an event: the thread takes over at once.
  void end_polls();

  // --- set-up: may be called from any thread. Runs `body(parts)` under the lock and returns its
  // result.
  struct Parts {
    Time now;
    transport::Endpoint& endpoint;
    DeviceNode& node;
    net::HostMemory& memory;
    control::CtlAgent& agent;
    Prng& prng;
    std::uint32_t& receives_reserved;
    net::UdpWorld& world;
  };
  template <typename Body>
  auto with_lock(Body body) {
    lock_.lock();
    Parts parts{os::clock_now(), *endpoint_,         *node_, *memory_, *agent_,
                prng_,           receives_reserved_, *world_};
    auto result = body(parts);
    unlock_after_posts();
    return result;
  }

  // Adds a context that gets an event whenever a port goes down or comes up.
  void add_listener(AsyncEvents& events, const void* owner);
  void remove_listener(const void* owner);
  CounterTable counters();

 private:
  explicit DeviceEngine(const EngineConfig& config);
  Result<void> start();

  // When the caller drives the device again. With kAtOnce, received packets are reported first, and
  // the sending of acknowledgements may wait for the caller's next call. drive() REQUIRES the lock.
  enum class NextCall : std::uint8_t { kAtOnce, kLater };
  bool drive(NextCall back = NextCall::kLater);
  void tell_ports();
  // Unlocks, after it has processed the posts of other threads.
  void unlock_after_posts();

  void drive_if_free(NextCall back);
  std::uint64_t count_poll() {
    if (!polled_.load(std::memory_order_relaxed)) polled_ = true;
    return polls_.fetch_add(1, std::memory_order_relaxed);
  }
  static constexpr std::uint64_t kDriveEvery = 16;

  void run();
  void end_sleep();
  void nap(Duration gap);
  void sleep(const os::Waiter& waiter, Time until) const;

  EngineConfig config_;
  Prng prng_;
  std::vector<world::Address> addresses_;
  std::vector<fabric::Ev> evs_;
  std::mutex lock_;
  // The order of these members matters for destruction: the world refers to the node, the node to
  // the endpoint, and the endpoint to the memory. So the world is destroyed first.
  std::unique_ptr<net::HostMemory> memory_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  std::unique_ptr<DeviceNode> node_;
  std::unique_ptr<control::CtlAgent> agent_;
  std::uint32_t disabled_told_ = 0;  // bit i: listeners were told that port i is disabled
  std::mutex asks_lock_;
  std::unique_ptr<net::UdpWorld> world_;
  std::optional<ForkGuard> fork_guard_;
  std::uint32_t receives_reserved_ = 0;
  struct MeasuredPayload {
    world::Address peer{};
    std::uint32_t payload = 0;
    Time until;
  };
  MeasuredPayload measured_payload_;
  struct Listener {
    AsyncEvents* events = nullptr;
    const void* owner = nullptr;
  };
  std::vector<Listener> listeners_;
  // The time until which the thread sleeps; 0 while the thread is awake. During the sleep, packets
  // in rings and planes wake the thread (prepare_wait).
  Time sleeps_until_;

  // Whether a program polls, and the number of polls so far.
  std::atomic<bool> polled_{false};
  std::atomic<std::uint64_t> polls_{0};
  std::atomic<bool> stop_{false};
  std::mutex nap_lock_;
  std::condition_variable nap_over_;
  std::thread thread_;
};

}  // namespace weft::device
