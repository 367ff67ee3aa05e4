#include "device/device_engine.h"

#include <algorithm>

#include "engine/process_config.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/random_seed.h"

namespace weft::device {
namespace {

// The longest time for which a device that is being closed still sends.
constexpr Duration kCloseTimeMax = Duration::ms(10);
// How long a measured payload limit is reused: long enough for QPs that are connected one after
// another.
constexpr Duration kFitsFor = Duration::ms(100);
// The most rounds of one leave(), in case other threads post without end; then the device's thread
// takes over.
constexpr int kRoundsMax = 8;

}  // namespace

DeviceEngine::DeviceEngine(const EngineConfig& config)
    : config_(config), prng_(os::random_seed()) {}

Result<std::unique_ptr<DeviceEngine>> DeviceEngine::open(const EngineConfig& config) {
  std::unique_ptr<DeviceEngine> engine(new DeviceEngine(config));
  WEFT_CHECK(engine->start());
  return engine;
}

Result<void> DeviceEngine::start() {
  const EngineLimits& limits = config_.limits;
  config_.world.secured_qps_max = limits.qps_max;
  WEFT_TRY(world_, net::UdpWorld::open(config_.world));
  // The keys have been derived, and nothing else needs the secret: no copy may stay in memory.
  std::fill(config_.world.job_secret.begin(), config_.world.job_secret.end(), std::byte{0});
  addresses_ = world_->addresses();
  evs_ = world_->evs();
  memory_ = std::make_unique<net::HostMemory>(limits.regions_max, prng_.next());
  auto config = engine::endpoint_config(*world_,
                                        {.mtu = config_.world.mtu,
                                         .burst = config_.burst,
                                         .qps_max = limits.qps_max,
                                         .evs_max = limits.qps_max * limits.evs_per_qp,
                                         .psn_blocks_max = limits.psn_blocks_max,
                                         .completions_max = limits.sends_max + limits.receives_max,
                                         .control_queue_max = 4096},
                                        prng_);
  config.tell_failures = true;
  config.ask_count_max = kAsksMax;
  config.ev_news_max = 4096;
  endpoint_ = std::make_unique<transport::Endpoint>(config, *memory_, nullptr);
  node_ = std::make_unique<DeviceNode>(
      DeviceNode::Options{
          .qps_max = limits.qps_max, .sends_max = limits.sends_max, .mtu = payload_max()},
      *endpoint_, *memory_);
  agent_ = std::make_unique<control::CtlAgent>(
      control::open_controller(config_.name, config_.world.planes), evs_,
      engine::plane_congestion());
  WEFT_CHECK(world_->attach(addresses_, *node_));
  node_->take_port_news();
  fork_guard_.emplace(*world_, lock_);
  if (!fork_guard_->is_set())
    return Error{ErrorKind::kExhausted, "too many devices are open in this process"};
  thread_ = std::thread([this] { run(); });
  return {};
}

DeviceEngine::~DeviceEngine() {
  stop_ = true;
  if (thread_.joinable()) {
    world_->wake();
    {
      const std::lock_guard guard(nap_lock_);
      nap_over_.notify_all();
    }
    thread_.join();
    // Send the last acknowledgements: a program may exit as soon as it has its last completion.
    const Time until = os::clock_now() + kCloseTimeMax;
    while (world_->pass() && os::clock_now() < until) {
    }
  }
  fork_guard_.reset();
  world_.reset();
}

// --- work --------------------------------------------------------------------------------------

bool DeviceEngine::drive(NextCall back) {
  agent_->service(world_->now(), *endpoint_);
  // With kAtOnce, acknowledgements may wait for the caller's next call. If the caller does not call
  // again, the device's thread sends them, provided that it is awake. If that thread sleeps, they
  // are sent now.
  const bool moved = back == NextCall::kAtOnce && sleeps_until_ == Time()
                         ? world_->progress(Time())
                         : world_->pass(sleeps_until_);
  node_->deliver_completions(world_->now());
  tell_ports();
  return moved;
}

// A thread that does not get the lock leaves its posts in the rings of their QPs. The thread that
// holds the lock processes these posts before it unlocks.
void DeviceEngine::unlock_after_posts() {
  for (int round = 0;; ++round) {
    // New posts may have a deadline that is earlier than the time until which the device's thread
    // sleeps.
    bool wake = node_->next_deadline() < sleeps_until_ || round == kRoundsMax;
    // prepare_wait() is repeated for the sleeping thread: this thread may have consumed that
    // thread's wake-up, a ring may be new, or some planes may not be watched any more.
    if (sleeps_until_ != Time() && !world_->prepare_wait()) wake = true;
    lock_.unlock();
    if (wake) world_->wake();
    if (!node_->has_posts() || round == kRoundsMax || !lock_.try_lock()) return;
    drive();
  }
}

void DeviceEngine::submit(DeviceQp& qp) {
  const bool idle = node_->submit(qp) && qp.sends.is_idle_hint();
  // A program that polls will do so again soon, and its posts are batched until then. But the first
  // post of an idle QP is sent at once.
  const bool polled = polled_.load(std::memory_order_relaxed);
  if (!polled || idle) drive_if_free(polled ? NextCall::kAtOnce : NextCall::kLater);
}

void DeviceEngine::end_polls() {
  if (!polled_.exchange(false)) return;
  const std::lock_guard guard(nap_lock_);
  nap_over_.notify_all();
}

void DeviceEngine::drive_if_free(NextCall back) {
  if (!lock_.try_lock()) return;
  drive(back);
  unlock_after_posts();
}

std::uint32_t DeviceEngine::payload_to(Time now, std::span<const world::Address> peer) {
  if (measured_payload_.peer != peer[0] || now >= measured_payload_.until)
    measured_payload_ = {
        .peer = peer[0], .payload = world_->payload_to(peer), .until = now + kFitsFor};
  return measured_payload_.payload;
}

// --- ports -------------------------------------------------------------------------------------

void DeviceEngine::add_listener(AsyncEvents& events, const void* owner) {
  const std::lock_guard guard(lock_);
  listeners_.push_back({&events, owner});
}

void DeviceEngine::remove_listener(const void* owner) {
  const std::lock_guard guard(lock_);
  std::erase_if(listeners_, [&](const Listener& l) { return l.owner == owner; });
}

void DeviceEngine::tell_ports() {
  DeviceNode::PortNews news = node_->take_port_news();
  const std::uint32_t disabled = agent_->ports_disabled();
  news.changed =
      static_cast<world::PortMask>((news.changed & ~disabled) | (disabled ^ disabled_told_));
  news.up = static_cast<world::PortMask>(news.up & ~disabled);
  disabled_told_ = disabled;
  for (int port = 0; news.changed >> port != 0; ++port) {
    if ((news.changed >> port & 1) == 0) continue;
    for (const Listener& listener : listeners_) {
      listener.events->push(
          {.owner = listener.owner,
           .port = port + 1,
           .type = (news.up >> port & 1) != 0 ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR});
    }
  }
}

CounterTable DeviceEngine::counters() {
  const std::lock_guard guard(lock_);
  CounterTable table = endpoint_->counters();
  const CounterTable net = world_->counters();
  table.insert(table.end(), net.begin(), net.end());
  return table;
}

}  // namespace weft::device
