#include "net/udp_world.h"

#include <sched.h>

#include <algorithm>

#include "base/assert.h"
#include "os/courtesy.h"

namespace weft::net {
namespace {

// Spinning for so long, it lets others have the core.
constexpr Duration kYieldAfter = Duration::us(20);
// The core was lent for so long: from then on for a while it is needed by others.
constexpr Duration kCrowdedGap = Duration::us(30), kCrowded = Duration::ms(20);
// Courtesy lasts longer: to find out anew takes spinning.
constexpr Duration kCourteous = Duration::ms(500);
// So many packets go out for each that comes in: acknowledgements come in, messages go out.
constexpr std::uint64_t kSendsMostly = 2;
// Who asks for that much wants no sleep at all.
constexpr Duration kSpinForever = Duration::s(1);
// Nobody looked for that long: the world itself stood still.
constexpr Duration kLate = Duration::ms(1);
// While a plane is busy and has nothing just now: its packets may come on another.
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

// Where something came a moment ago, without asking everywhere: a look at a ring costs less than one
// at the clock, a look at one socket less than at all.
bool UdpWorld::look_where_it_came(Time plane_busy_until) {
  for (int i = 0; i < kRingLooks && shm_ != nullptr; ++i) {
    if (!shm_->receive(now_, *node_)) continue;
    ring_busy_until_ = now_ + kBusy;
    return true;
  }
  // Where single runs came, asking for more would cost a second look at the socket.
  for (int i = 0; i < kPlaneLooks && now_ < plane_busy_until; ++i) {
    if (receive(busy_plane_, busy_runs_)) return true;
  }
  return false;
}

// What came, by ring or socket, and what falls due. While rings are busy sockets are asked now and
// then only: the question costs more than a whole round trip over a ring.
bool UdpWorld::take(Time sleep_until) {
  // What was slept on purpose is not late.
  const Time due = std::max(last_pass_, sleep_until);
  // One that is about to sleep is told by the kernel, and one that has just sent has no answer yet: a
  // look at a socket would be in vain. Better now at all of them than while the answer comes.
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

// How long to look before going to sleep.
Duration UdpWorld::spin() const {
  const bool crowded = now_ < crowded_until_ && config_.spin < kSpinForever;
  return crowded ? Duration() : config_.spin;
}

// More of us than cores. One that sends to a process of this host and is woken by its reports would take
// the very core that works off what was sent.
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
    // Who never spins sleeps soon, and hears then what came.
    if (moved && spin() == Duration() && now_ - last_pass_ < kLookEvery) return true;
    const bool sleeps = !moved && now_ - start >= spin();
    moved |= take(sleeps ? sleep_until(limit) : Time());
    if (moved) return true;
    if (now_ >= limit) return false;
    // Whoever we wait for may need this core.
    if (now_ - start > kYieldAfter) {
      sched_yield();
      // Somebody else had it for long: there are more of us than cores, and spinning is in the way.
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
  // Those that this layer gives; the node counts its own.
  const auto add = [&](std::string_view name, DropReason reason) {
    table.push_back({name, "packets", drops_[static_cast<std::size_t>(reason)]});
  };
  add("net.drop_too_short", DropReason::kTooShort);
  add("net.drop_bad_opcode", DropReason::kBadOpcode);
  add("net.drop_bad_version", DropReason::kBadVersion);
  add("net.drop_bad_header", DropReason::kBadHeader);
  add("net.drop_no_buffer", DropReason::kNoBuffer);
  add("net.drop_stale", DropReason::kStale);
  add("net.drop_no_session", DropReason::kNoSession);
  add("net.drop_forged", DropReason::kForged);
  add("net.drop_replayed", DropReason::kReplayed);
  if (shm_ != nullptr) {
    const CounterTable shared = shm_->counters();
    table.insert(table.end(), shared.begin(), shared.end());
  }
  return table;
}

}  // namespace weft::net
