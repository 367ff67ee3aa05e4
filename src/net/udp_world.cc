#include "net/udp_world.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "os/courtesy.h"
#include "os/log.h"

namespace weft::net {
namespace {

// A longer time between two passes means that this process itself was not running.
constexpr Duration kLate = Duration::ms(1);
// How often a ring, or the busy plane, is polled in a row before something else is tried.
constexpr int kRingPolls = 4, kPlanePolls = 4;
// The most packets that the node may give for one port in one poll.
constexpr std::uint32_t kPortRoom = 32;
static_assert(HeldPackets::kMax >= kPortRoom);

}  // namespace

// --- receiving ---------------------------------------------------------------------------------

bool UdpWorld::prepare_wait() {
  if (!watch_->prepare_wait(now_)) return false;
  if (shm_ == nullptr || shm_->sleep()) return true;
  watch_->end_wait(now_);
  return false;
}

void UdpWorld::end_wait() {
  watch_->end_wait(clock());
  if (shm_ != nullptr) shm_->wake();
}

bool UdpWorld::poll_ring() {
  for (int i = 0; i < kRingPolls && shm_ != nullptr; ++i) {
    if (!shm_->receive(now_, *node_)) continue;
    order_.note_ring(now_);
    return true;
  }
  return false;
}

bool UdpWorld::poll_busy_plane() {
  for (int i = 0; i < kPlanePolls; ++i) {
    if (receive(order_.busy_plane(), order_.runs_max())) return true;
  }
  return false;
}

// Receives from all rings and sockets. If `sleep_until` is in the future, sleeps until something
// arrives. True if anything arrived.
bool UdpWorld::poll_all(Time sleep_until) {
  order_.note_all_polled(now_);
  bool moved = false;
  if (!watch_->watches_planes(now_)) {
    WEFT_ASSERT(sleep_until <= now_);
    const SocketWatch::Polled polled = watch_->poll_planes();
    if (polled.others) moved = handle_events(watch_->events());
    const std::size_t runs_max =
        std::has_single_bit(polled.planes) ? order_.runs_max() : PollOrder::kRunsWhenMany;
    for (std::uint32_t left = polled.planes; left != 0; left &= left - 1)
      moved |= receive(static_cast<std::uint32_t>(std::countr_zero(left)), runs_max);
  } else if (sleep_until <= now_) {
    moved = handle_events(watch_->events());
  } else {
    const Time until = sleep_until == kNever ? kNever : sleep_until + config_.epoch.since_start();
    const auto events = watch_->sleep(until);
    now_ = clock();
    moved = handle_events(events);
  }
  if (shm_ != nullptr) shm_->report_refusals(now_, *node_);
  return moved;
}

// Receives from rings and sockets, and runs deadlines that are due. True if a packet or an event
// was handled.
bool UdpWorld::receive_all(Time sleep_until) {
  // Time that the world slept on purpose is not lateness.
  const Time due = std::max(last_pass_, sleep_until);
  // Before a sleep no plane is polled alone, because the kernel is about to watch all of them.
  const bool plane_alone = sleep_until <= now_ && order_.is_plane_busy(now_);
  bool moved = poll_ring() || (plane_alone && poll_busy_plane());
  if (moved) sleep_until = Time();
  const bool sleeps = sleep_until > now_ && prepare_wait();
  if (sleeps || order_.is_poll_of_all_due(now_) ||
      !(moved || order_.may_others_wait(now_, plane_alone))) {
    moved |= poll_all(sleeps ? sleep_until : Time());
  }
  if (sleeps) end_wait();
  return run_deadlines(due) || moved;
}

bool UdpWorld::run_deadlines(Time due) {
  const Duration late = now_ > due && now_ - due > kLate ? now_ - due : Duration();
  last_pass_ = now_;
  if (now_ >= host_.next_try()) try_host_port();
  if (now_ >= refusals_.next()) poll_next_refusals();
  if (node_->next_deadline() > now_) return false;
  node_->on_deadline(now_, late);
  return true;
}

// --- sending -----------------------------------------------------------------------------------

// Polls the node for datagrams as far as ports have room, and sends them. True if there were any.
bool UdpWorld::transmit() {
  std::array<world::PortRoom, world::kPortsMax> room{};
  bool any = false;
  // Each plane gets its share of the cap, rounded up; the excess is a debt that later polls repay.
  const auto plane_count = static_cast<std::uint32_t>(planes_.size());
  const std::uint32_t plane_room =
      rate_cap_ ? std::min(kPortRoom, (rate_cap_->packets(now_) + plane_count - 1) / plane_count)
                : kPortRoom;
  for (std::size_t p = 0; p < plane_count; ++p) {
    room[p].packets = planes_[p].held().is_empty() ? plane_room : 0;
    any |= room[p].packets > 0;
  }
  if (shm_ != nullptr) {
    room[plane_count] = shm_->room(now_);
    any |= room[plane_count].packets > 0;
  }
  order_.note_transmit(PollOrder::Sent::kNothing);
  if (!any) return false;
  const std::size_t count = node_->poll_transmit(now_, std::span(room).first(port_count()), out_);
  for (std::size_t i = 0; rate_cap_ && i < count; ++i) {
    if (out_[i].port < plane_count) rate_cap_->spend(out_[i].payload.size);
  }
  const std::span<const world::Datagram> out =
      group_by_path(std::span(out_).first(count), grouped_);
  for (std::size_t sent = 0; sent < count;) {
    if (out[sent].port == plane_count) {
      shm_->send(out[sent++]);
    } else {
      sent += sender_->send_run(now_, out.subspan(sent));
    }
  }
  if (count == 0) return false;
  if (shm_ != nullptr) shm_->flush();
  order_.note_transmit(PollOrder::Sent::kPackets);
  return true;
}

// --- passes and waiting ------------------------------------------------------------------------

bool UdpWorld::pass(Time slept_until) {
  WEFT_ASSERT(node_ != nullptr);
  now_ = clock();
  last_pass_ = std::max(last_pass_, std::min(slept_until, now_));
  const bool moved = receive_all(Time());
  return transmit() || moved;
}

Time UdpWorld::sleep_until(Time limit) const {
  Time until = std::min({limit, node_->next_deadline(), host_.next_try(), refusals_.next()});
  if (rate_cap_ && rate_cap_->opens_at() > now_) until = std::min(until, rate_cap_->opens_at());
  return until;
}

// Called when the waiter has found that the cores are oversubscribed.
void UdpWorld::become_courteous() {
  if (courtesy_.on_oversubscribed(now_, {.sent = counters_.packets_sent.sum(),
                                         .received = counters_.packets_received.sum(),
                                         .is_from_here = is_from_here_}))
    os::set_courtesy(os::Courtesy::kWaitsForIt);
}

bool UdpWorld::progress(Time limit) {
  WEFT_ASSERT(node_ != nullptr);
  if (courtesy_.is_over(now_)) os::set_courtesy(os::Courtesy::kTakesTheCore);
  for (bool first = true;; first = false) {
    now_ = clock();
    if (first) waiter_.start(now_);
    bool moved = transmit();
    // A world that does not spin soon sleeps, and receives then. Until it sleeps, it receives at
    // least every kAllEvery.
    if (moved && waiter_.spin(now_) == Duration() && now_ - last_pass_ < PollOrder::kAllEvery)
      return true;
    const bool sleeps = !moved && waiter_.may_sleep(now_);
    moved |= receive_all(sleeps ? sleep_until(limit) : Time());
    if (moved) return true;
    if (now_ >= limit) return false;
    if (waiter_.yield(now_)) become_courteous();
  }
}

bool UdpWorld::step(Time limit) {
  while (now_ < limit) progress(limit);
  transmit();
  return true;
}

CounterTable UdpWorld::counters() const {
  CounterTable table;
  const auto add = [&table, this](std::string_view name, std::string_view unit,
                                  const PerPlane& counts) {
    add_per_plane({.name = name, .unit = unit}, counts, planes_.size(), table);
  };
  add("net.packets_sent", "packets", counters_.packets_sent);
  add("net.packets_received", "packets", counters_.packets_received);
  add("net.drops_host", "runs", counters_.drops_host);
  const std::initializer_list<Counter> others = {
      {"net.sends", "calls", counters_.sends},
      {"net.receives", "calls", counters_.receives},
      {"net.sends_held", "calls", counters_.sends_held},
      {"net.drops_send", "packets", counters_.drops_send},
      {"net.refusals", "packets", counters_.refusals},
      {"net.hellos_sent", "packets", counters_.hellos_sent},
      {"net.waits_for_keys", "packets", counters_.waits_for_keys},
      {"net.host_requests", "packets", counters_.host_requests},
      {"net.host_strays", "packets", counters_.host_strays}};
  table.insert(table.end(), others);
  // The drop reasons of this layer; the node counts its own drops.
  for (const DropReason reason :
       {DropReason::kTooShort, DropReason::kBadOpcode, DropReason::kBadVersion,
        DropReason::kBadHeader, DropReason::kNoBuffer, DropReason::kStale, DropReason::kNoSession,
        DropReason::kForged, DropReason::kReplayed}) {
    table.push_back({.name = "net.drop",
                     .unit = "packets",
                     .value = counters_.drops[static_cast<std::size_t>(reason)],
                     .labels = {.reason = to_string(reason)}});
  }
  if (shm_ != nullptr) {
    const CounterTable shared = shm_->counters();
    table.insert(table.end(), shared.begin(), shared.end());
  }
  return table;
}

}  // namespace weft::net
