// EvProber: which condemned paths live again? Asks with EV probes, once per (peer, EV) whichever
// QPs use it.
//
// An EV is asked for every millisecond, less often when many are bad, so that all of an endpoint's
// probes stay within its budget; after an answer the next question comes a millisecond later. Three
// answers in a row revive it; an EV that failed again within a second of its revival needs twice as
// many, up to twelve. A plane (all EVs of a port) is watched through up to three of its EVs, and
// three answers from any of them revive it.
//
// Where answers are known to take longer than that (software ends), several questions are under way
// at a time: over a long path, or behind a queue, no answer is there when the next question is due.
// They follow each other so that those under way cover twice the time that an answer takes.
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
    std::array<std::uint16_t, kUnderWayMax> questions{};  // under way, oldest first
    std::uint8_t under_way = 0;
    std::uint8_t answers = 0, needed = 3;
    bool plane = false;   // stands for the whole plane
    bool alone = false;   // condemned by itself: the plane's revival is not its own
    bool active = false;  // false: remembered only for its record
  };

  // True when the EV is watched from now on (or already was); false when the table is full: then it
  // must not be condemned.
  bool watch(Time now, std::uint32_t peer, fabric::Ev ev, bool plane);

  // There is no QP to that peer any more.
  void forget_peer(std::uint32_t peer);

  Time next_deadline() const { return next_at_; }
  // Queues the questions that are due. `answer_time(peer)` says how long a peer's answers take; zero:
  // less than the time to the next question, or there are none.
  template <typename AnswerTime>
  void ask(Time now, ControlQueue& out, RequestIds& ids, AnswerTime answer_time);

  // An answer to `request_id` came: null if it is none of ours; else the watch, whose `active`
  // turned false if revived.
  const Watch* on_answer(Time now, std::uint32_t peer, std::uint16_t request_id);

  // True once after an EV or plane came under watch.
  bool take_new() { return std::exchange(new_, false); }

  std::uint32_t watched() const { return active_; }
  std::uint64_t asked() const { return asked_; }
  std::size_t bytes() const { return watches_.capacity() * sizeof(Watch); }

 private:
  // Questions are at most 16 ms apart, as what lives again must be found out soon; with eight under
  // way, answers may take twice as long as this.
  static constexpr Duration kAnswerTimeMax = Duration::ms(64);

  Watch* find(std::uint32_t peer, fabric::Ev ev);
  static void forget_questions(Watch& watch, std::uint8_t count);
  void reschedule();

  std::vector<Watch> watches_;  // capacity taken at construction
  std::uint32_t watched_max_;
  std::uint32_t active_ = 0;
  std::uint64_t asked_ = 0;
  Time next_at_ = kNever;
  bool new_ = false;
};

template <typename AnswerTime>
void EvProber::ask(Time now, ControlQueue& out, RequestIds& ids, AnswerTime answer_time) {
  if (now < next_at_) return;
  for (Watch& w : watches_) {
    if (!w.active || w.next_at > now) continue;
    // Unanswered questions stretch with the number of bad EVs: 1,000 a second in all, each EV at
    // least once a second.
    const std::int64_t stretch = w.answers > 0 ? 1 : std::min<std::int64_t>(active_, 1000);
    const Duration takes = std::min(answer_time(w.peer), kAnswerTimeMax);
    w.next_at = now + std::max(Duration::ms(1) * stretch, takes / (kUnderWayMax / 2));
    const std::uint8_t waited_for = takes > Duration() ? kUnderWayMax : 1;
    const bool unanswered = w.under_way >= waited_for;  // the oldest
    if (unanswered) w.answers = 0;
    ControlPacket* packet = out.add();
    if (packet == nullptr) {
      w.next_at = now + Duration::ms(1);  // its turn is not lost
      continue;
    }
    if (unanswered) forget_questions(w, static_cast<std::uint8_t>(w.under_way - waited_for + 1));
    const std::uint16_t id = ids.next();
    WEFT_ASSERT(w.under_way < kUnderWayMax);  // the oldest was forgotten above
    w.questions[w.under_way++] = id;
    ++asked_;
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
