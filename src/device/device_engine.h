// DeviceEngine: one device at work in this process: sockets, registered memory, the endpoint, and
// the thread that keeps them going when nobody else does.
//
// One lock; the clock is read after it is taken. Whoever polls drives the device; while anybody
// does, the thread sleeps, and it is back 50 to 200 us after the last poll (EngineConfig::poll_gap),
// or at once if whoever polled waits for an event. Posting never waits: posts lie in rings of their
// QPs, and the poster passes by once if the lock is free; else whoever holds it sees them before it
// goes. Applications may spin on memory and never call us.
//
// QPs are made by QueuePair (queue_pair.h), which calls under the lock through with_lock().
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
#include "transport/endpoint.h"

namespace weft::device {

// What a device takes at most, over all its users in a process.
struct EngineLimits {
  std::uint32_t qps_max = 2048;  // a power of two
  std::uint32_t regions_max = 65'536;
  std::uint32_t sends_max = 16'384;  // in the endpoint at a time; more wait in their QPs
  std::uint32_t receives_max = 114'688;
  std::uint32_t evs_per_qp = 64;
  std::uint32_t psn_blocks_max = 16'384;  // of 64 PSNs each, over all QPs
};

struct EngineConfig {
  std::string name = "weft0";
  net::UdpWorldConfig world{};
  bool must_share_memory = false;  // a QP whose peer cannot be reached so is not connected
  std::uint32_t burst = 15;
  std::vector<std::uint32_t> cpus{};     // that its thread runs on; empty: those of who opens it
  Duration poll_gap = Duration::us(50);  // nobody polled for that long: the thread is back
  EngineLimits limits{};
};

class DeviceEngine {
 public:
  // Errors: kInvalid, kExhausted (no slot on the network is free), kBusy (another process
  // has the only one), kUnsupported, kSystem.
  static Result<std::unique_ptr<DeviceEngine>> open(const EngineConfig& config);
  ~DeviceEngine();
  DeviceEngine(const DeviceEngine&) = delete;
  DeviceEngine& operator=(const DeviceEngine&) = delete;

  const EngineConfig& config() const { return config_; }
  const std::vector<world::Address>& addresses() const { return addresses_; }
  const std::vector<fabric::Ev>& evs() const { return evs_; }
  // Of the largest packet that may come or go, over planes or shared memory.
  std::uint32_t payload_max() const {
    return world_->has_shared_memory() ? std::uint32_t{net::kShmPayloadMax} : config_.world.mtu;
  }

  // Endpoint requests under way at most, and who has them: one batch at a time.
  static constexpr std::uint32_t kAsksMax = 256;
  std::mutex& asks_lock() { return asks_lock_; }

  // The payload that fits the planes to a peer, as UdpWorld::payload_to; asked of the kernel for the
  // first of several QPs only. REQUIRES the lock.
  std::uint32_t payload_to(Time now, std::span<const world::Address> peer);

  // --- work, from any thread
  void submit(DeviceQp& qp);
  // Receives only: taken before the next datagram is looked at, and not earlier.
  void submit_receives(DeviceQp& qp) { node_->submit(qp); }
  // One look at the network. Returns at once if another thread is at it.
  void poll() {
    count_poll();
    look(Back::kAtOnce);
  }
  // Somebody polls, and found something without a look: it is back soon. Who finds something every
  // time, one by one, looks now and then all the same: nobody else does.
  void note_poll() {
    if (count_poll() % kLookEvery == 0) look(Back::kAtOnce);
  }
  // The same, by somebody who will not be back soon.
  void poll_once() { look(Back::kSomeTime); }
  // Whoever polled waits for an event from here on: the thread is back at once.
  void end_polls();

  // --- set-up, from any thread: `body(parts)` runs under the lock, its result comes back.
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
    leave();
    return result;
  }

  // Who is told when a port goes or comes.
  void add_listener(AsyncEvents& events, const void* owner);
  void remove_listener(const void* owner);
  CounterTable counters();

 private:
  explicit DeviceEngine(const EngineConfig& config);
  Result<void> start();

  // REQUIRES the lock. Who is back at once sees what came, and answers it then.
  enum class Back : std::uint8_t { kAtOnce, kSomeTime };
  bool pass(Back back = Back::kSomeTime);
  void tell_ports();
  // Unlocks; what was posted meanwhile is seen to first.
  void leave();

  void look(Back back);
  std::uint64_t count_poll() {
    if (!polled_.load(std::memory_order_relaxed)) polled_ = true;
    return polls_.fetch_add(1, std::memory_order_relaxed);
  }
  static constexpr std::uint64_t kLookEvery = 16;

  void run();
  void rise();
  void nap(Duration gap);
  void sleep(Time until) const;

  EngineConfig config_;
  Prng prng_;
  std::vector<world::Address> addresses_;
  std::vector<fabric::Ev> evs_;
  std::mutex lock_;
  // The world goes first: it knows the node, that the endpoint, that the memory.
  std::unique_ptr<net::HostMemory> memory_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  std::unique_ptr<DeviceNode> node_;
  std::unique_ptr<control::CtlAgent> agent_;
  std::uint32_t disabled_told_ = 0;  // ports, bit i for index i, that listeners know to be disabled
  std::mutex asks_lock_;
  std::unique_ptr<net::UdpWorld> world_;
  std::optional<ForkGuard> fork_guard_;
  std::uint32_t receives_reserved_ = 0;
  struct Fits {
    world::Address peer{};
    std::uint32_t payload = 0;
    Time until;
  };
  Fits fits_;
  struct Listener {
    AsyncEvents* events = nullptr;
    const void* owner = nullptr;
  };
  std::vector<Listener> listeners_;
  // The thread does, and rings and planes call it (prepare_wait); 0: it is awake.
  Time sleeps_until_;

  // Somebody polls; how often that was.
  std::atomic<bool> polled_{false};
  std::atomic<std::uint64_t> polls_{0};
  std::atomic<bool> stop_{false};
  std::mutex nap_lock_;
  std::condition_variable nap_over_;
  std::thread thread_;
};

}  // namespace weft::device
