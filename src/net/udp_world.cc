#include "net/udp_world.h"

#include <sched.h>

#include <algorithm>

#include "base/assert.h"
#include "os/courtesy.h"

namespace weft::net {
namespace {

// After spinning for so long the world yields the core.
constexpr Duration kYieldAfter = Duration::us(20);
// A yield that takes longer than kCrowdedGap shows that cores are oversubscribed. The world then
// does not spin for kCrowded.
constexpr Duration kCrowdedGap = Duration::us(30), kCrowded = Duration::ms(20);
// SCHED_BATCH lasts longer, because detecting oversubscription takes spinning.
constexpr Duration kCourteous = Duration::ms(500);
// This ratio of packets sent to received means that this process sends messages and receives mostly
// acknowledgements.
constexpr std::uint64_t kSendsMostly = 2;
// A configured spin time of this or more means that the world never sleeps.
constexpr Duration kSpinForever = Duration::s(1);
// No pass for that long: the process itself was not running.
constexpr Duration kLate = Duration::ms(1);
// How often all planes are polled while one is busy but empty: its packets may arrive on another.
constexpr Duration kPlaneLookEvery = Duration::us(6);
constexpr int kRingLooks = 4, kPlaneLooks = 4;

}  // namespace

// --- time --------------------------------------------------------------------------------------

void UdpWorld::tell_port(std::uint32_t plane) {
  node_->on_port(now_, static_cast<world::PortIndex>(plane),
                 {.up = (told_up_ >> plane & 1) != 0,
                  .receive_bytes = receive_bytes(planes_[plane]),
                  .overflows = planes_[plane].overflow,
                  .singly = comes_singly_});
}

bool UdpWorld::look_at_deadline(Time due) {
  const Duration late = now_ > due && now_ - due > kLate ? now_ - due : Duration();
  last_pass_ = now_;
  if (now_ >= host_next_) try_host();
  if (now_ >= refusals_next_) hear_next_refusals();
  if (node_->next_deadline() > now_) return false;
  node_->on_deadline(now_, late);
  return true;
}

// Polls only the ring and the plane that recently received something. Polling a ring costs less
// than reading the clock, and polling one socket less than polling all.
bool UdpWorld::look_where_it_came(Time plane_busy_until) {
  for (int i = 0; i < kRingLooks && shm_ != nullptr; ++i) {
    if (!shm_->receive(now_, *node_)) continue;
    ring_busy_until_ = now_ + kBusy;
    return true;
  }
  // If single runs arrived last time, asking for more runs would cost a second system call.
  for (int i = 0; i < kPlaneLooks && now_ < plane_busy_until; ++i) {
    if (receive(busy_plane_, busy_runs_)) return true;
  }
  return false;
}

// Receives from rings and sockets, and handles deadlines that are due. While rings are busy,
// sockets are polled only from time to time: polling them costs more than a whole round trip over a
// ring.
bool UdpWorld::take(Time sleep_until) {
  // Time that the world slept on purpose does not count as lateness.
  const Time due = std::max(last_pass_, sleep_until);
  // The busy socket is not polled alone when the kernel is about to watch all sockets for a sleep,
  // nor right after a send, when the answer cannot be here yet: that is the time to poll all
  // sockets.
  const Time plane_busy_until = has_sent_ || sleep_until > now_ ? Time() : plane_busy_until_;
  bool moved = look_where_it_came(plane_busy_until);
  if (moved) sleep_until = Time();
  const bool sleeps = sleep_until > now_ && prepare_wait();
  const bool busy = moved || now_ < ring_busy_until_ ||
                    (now_ < plane_busy_until && now_ < look_next_ - kLookEvery + kPlaneLookEvery);
  if (sleeps || now_ >= look_next_ || !busy) moved |= look(sleeps ? sleep_until : Time());
  if (sleeps) end_wait();
  return look_at_deadline(due) || moved;
}

bool UdpWorld::pass(Time slept_until) {
  WEFT_ASSERT(node_ != nullptr);
  now_ = clock();
  last_pass_ = std::max(last_pass_, std::min(slept_until, now_));
  const bool moved = take(Time());
  return transmit() || moved;
}

Time UdpWorld::sleep_until(Time limit) const {
  Time until = std::min({limit, node_->next_deadline(), host_next_, refusals_next_});
  if (cap_ && cap_->opens_at() > now_) until = std::min(until, cap_->opens_at());
  return until;
}

// How long to spin before sleeping.
Duration UdpWorld::spin() const {
  const bool crowded = now_ < crowded_until_ && config_.spin < kSpinForever;
  return crowded ? Duration() : config_.spin;
}

// The cores are oversubscribed. A process that mostly sends to another process of this host must
// not preempt it: each acknowledgement wakes the sender, which would take the core from the
// receiver that still has packets to process.
void UdpWorld::note_crowd() {
  crowded_until_ = now_ + kCrowded;
  const std::uint64_t sent = counters_.packets_sent - crowd_sent_;
  const std::uint64_t received = counters_.packets_received - crowd_received_;
  crowd_sent_ = counters_.packets_sent;
  crowd_received_ = counters_.packets_received;
  if (!is_from_here_ || sent <= kSendsMostly * received) return;
  courteous_until_ = now_ + kCourteous;
  os::set_courtesy(os::Courtesy::kWaitsForIt);
}

bool UdpWorld::progress(Time limit) {
  WEFT_ASSERT(node_ != nullptr);
  if (now_ >= courteous_until_) os::set_courtesy(os::Courtesy::kTakesTheCore);
  Time start = kNever;
  for (;;) {
    now_ = clock();
    start = std::min(start, now_);
    bool moved = transmit();
    // A world that never spins sleeps soon, and receives then.
    if (moved && spin() == Duration() && now_ - last_pass_ < kLookEvery) return true;
    const bool sleeps = !moved && now_ - start >= spin();
    moved |= take(sleeps ? sleep_until(limit) : Time());
    if (moved) return true;
    if (now_ >= limit) return false;
    // The process that we wait for may need this core.
    if (now_ - start > kYieldAfter) {
      sched_yield();
      // Another thread had the core for long: cores are oversubscribed, and spinning delays others.
      if (clock() - now_ > kCrowdedGap) note_crowd();
    }
  }
}

bool UdpWorld::step(Time limit) {
  while (now_ < limit) progress(limit);
  transmit();
  return true;
}

CounterTable UdpWorld::counters() const {
  CounterTable table = {{"net.packets_sent", "packets", counters_.packets_sent},
                        {"net.packets_received", "packets", counters_.packets_received},
                        {"net.sends", "calls", counters_.sends},
                        {"net.receives", "calls", counters_.receives},
                        {"net.sends_held", "calls", counters_.sends_held},
                        {"net.drops_send", "packets", counters_.drops_send},
                        {"net.drops_host", "runs", counters_.drops_host},
                        {"net.refusals", "packets", counters_.refusals},
                        {"net.hellos_sent", "packets", counters_.hellos_sent},
                        {"net.waits_for_keys", "packets", counters_.waits_for_keys},
                        {"net.host_requests", "packets", counters_.host_requests},
                        {"net.host_strays", "packets", counters_.host_strays}};
  // The drop reasons of this layer; the node counts its own.
  for (const DropReason reason :
       {DropReason::kTooShort, DropReason::kBadOpcode, DropReason::kBadVersion,
        DropReason::kBadHeader, DropReason::kNoBuffer, DropReason::kStale, DropReason::kNoSession,
        DropReason::kForged, DropReason::kReplayed}) {
    table.push_back({.name = "net.drop",
                     .unit = "packets",
                     .value = drops_[static_cast<std::size_t>(reason)],
                     .labels = {.reason = to_string(reason)}});
  }
  if (shm_ != nullptr) {
    const CounterTable shared = shm_->counters();
    table.insert(table.end(), shared.begin(), shared.end());
  }
  return table;
}

}  // namespace weft::net
