// EvProber: finds out when condemned paths work again. Sends EV probes, once per (peer, EV)
// whichever QPs use the EV.
//
// An EV is probed every millisecond, less often when many EVs are bad, so that all of an endpoint's
// probes stay within its budget. After an answer the next probe follows a millisecond later. Three
// answers in a row revive an EV. An EV that failed again within a second of its revival needs twice
// as many, up to twelve. A plane (all EVs of a port) is watched through up to three of its EVs, and
// three answers from any of them revive the plane.
//
// Where answers may take longer than a millisecond (software peers), several probes of one EV are
// in flight at a time, so that a late answer still counts. Together they cover twice the time that
// an answer takes.
//
// Bounded by its table; owned by the endpoint, which turns `revived` into calls on its QPs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/time.h"
#include "fabric/ev.h"
#include "transport/control_queue.h"
#include "transport/request_ids.h"

namespace weft::transport {

class EvProber {
 public:
  explicit EvProber(std::uint32_t watched_max);

  static constexpr std::uint8_t kUnderWayMax = 8;
  struct Watch {
    Time next_at, revived_at;
    std::uint32_t peer = 0;
    fabric::Ev ev;
    std::array<std::uint16_t, kUnderWayMax> probe_ids{};  // probes in flight, oldest first
    std::uint8_t under_way = 0;
    std::uint8_t answers = 0, needed = 3;
    bool plane = false;   // watched on behalf of the whole plane
    bool alone = false;   // condemned by itself: stays condemned when its plane is revived
    bool active = false;  // false: kept only for its record
  };

  // True when the EV is watched from now on, or was watched already. False when the table is full:
  // the EV must then not be condemned, since nothing could revive it.
  bool watch(Time now, std::uint32_t peer, fabric::Ev ev, bool plane);

  // The last QP to that peer is gone.
  void forget_peer(std::uint32_t peer);

  Time next_deadline() const { return next_at_; }
  // Queues the probes that are due. `answer_time(peer)`: how long a peer's answers take; zero: less
  // than the time between probes, or not known.
  template <typename AnswerTime>
  void ask(Time now, ControlQueue& out, RequestIds& ids, AnswerTime answer_time);

  // An answer to `request_id` came. Null if that is no probe of this class; else the watch, whose
  // `active` is false if the answer revived the EV.
  const Watch* on_answer(Time now, std::uint32_t peer, std::uint16_t request_id);

  // True on the first call after an EV or plane was added to the watched ones.
  bool take_new() { return std::exchange(new_, false); }

  std::uint32_t watched() const { return active_; }
  std::uint64_t probes_queued() const { return probes_queued_; }
  std::size_t bytes() const { return watches_.capacity() * sizeof(Watch); }

 private:
  // Largest answer time that lengthens the time between probes: probes of one EV stay at most 16 ms
  // apart, so that a working path is found soon. With eight in flight, answers may take twice this
  // time.
  static constexpr Duration kAnswerTimeMax = Duration::ms(64);

  Watch* find(std::uint32_t peer, fabric::Ev ev);
  static void forget_probes(Watch& watch, std::uint8_t count);
  void reschedule();

  std::vector<Watch> watches_;  // capacity taken at construction
  std::uint32_t watched_max_;
  std::uint32_t active_ = 0;
  std::uint64_t probes_queued_ = 0;
  Time next_at_ = kNever;
  bool new_ = false;
};

template <typename AnswerTime>
void EvProber::ask(Time now, ControlQueue& out, RequestIds& ids, AnswerTime answer_time) {
  if (now < next_at_) return;
  for (Watch& w : watches_) {
    if (!w.active || w.next_at > now) continue;
    // Time between unanswered probes grows with the number of bad EVs: at most 1,000 probes a
    // second in all, and each EV is probed at least once a second.
    const std::int64_t stretch = w.answers > 0 ? 1 : std::min<std::int64_t>(active_, 1000);
    const Duration takes = std::min(answer_time(w.peer), kAnswerTimeMax);
    w.next_at = now + std::max(Duration::ms(1) * stretch, takes / (kUnderWayMax / 2));
    const std::uint8_t waited_for = takes > Duration() ? kUnderWayMax : 1;
    const bool unanswered = w.under_way >= waited_for;  // the oldest probe
    if (unanswered) w.answers = 0;
    ControlPacket* packet = out.add();
    if (packet == nullptr) {
      w.next_at = now + Duration::ms(1);  // tried again soon: the queue was full
      continue;
    }
    if (unanswered) forget_probes(w, static_cast<std::uint8_t>(w.under_way - waited_for + 1));
    const std::uint16_t id = ids.next();
    WEFT_ASSERT(w.under_way < kUnderWayMax);  // the oldest probe was dropped above
    w.probe_ids[w.under_way++] = id;
    ++probes_queued_;
    packet->peer = w.peer;
    packet->port = PortChoice::only(w.ev.port);
    packet->fixed_ev = true;
    packet->entropy = w.ev.value;
    packet->data_class = true;
    write_header(
        *packet,
        {.opcode = wire::Opcode::kEndpointRequest, .dest_qpn = wire::kEndpointQpn, .psn = Psn(id)},
        wire::EndpointRequest{.op = wire::EndpointOp::kEvProbe});
  }
  reschedule();
}

}  // namespace weft::transport
