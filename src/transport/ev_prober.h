// EvProber: which condemned paths live again? Asks with EV probes, once per (peer, EV) whichever
// QPs use it.
//
// An EV is asked for every millisecond, less often when many are bad, so that all of an endpoint's
// probes stay within its budget; after an answer the next question comes a millisecond later. Three
// answers revive it; an EV that failed again within a second of its revival needs twice as many, up
// to twelve. A plane (all EVs of a port) is watched through up to three of its EVs, and three
// answers from any of them revive it.
//
// Bounded by its table; owned by the endpoint, which turns `revived` into calls on its QPs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "base/time.h"
#include "fabric/ev.h"
#include "transport/control_queue.h"

namespace weft::transport {

class EvProber {
 public:
  explicit EvProber(std::uint32_t watched_max);

  struct Watch {
    Time asked_at, next_at, revived_at;
    std::uint32_t peer = 0;
    fabric::Ev ev;
    std::uint16_t request_id = 0;  // of the question under way; 0: none
    std::uint8_t answers = 0, needed = 3;
    bool plane = false;   // stands for the whole plane
    bool alone = false;   // condemned by itself: the plane's revival is not its own
    bool active = false;  // false: remembered only for its record
  };

  // True when the EV is watched from now on (or already was); false when the table is full: then it
  // must not be condemned.
  bool watch(Time now, std::uint32_t peer, fabric::Ev ev, bool plane);

  // Nobody talks to that peer any more.
  void forget_peer(std::uint32_t peer);

  Time next_deadline() const { return next_at_; }
  // Queues the questions that are due, with `take_id` numbers from the endpoint.
  template <typename TakeId>
  void ask(Time now, ControlQueue& out, TakeId take_id);

  // An answer to `request_id` came: null if it is none of ours; else the watch, whose `active`
  // turned false if revived.
  const Watch* on_answer(Time now, std::uint32_t peer, std::uint16_t request_id);

  // True once after something new came under watch.
  bool take_new() { return std::exchange(new_, false); }

  std::uint32_t watched() const { return active_; }
  std::uint64_t asked() const { return asked_; }
  std::size_t bytes() const { return watches_.capacity() * sizeof(Watch); }

 private:
  Watch* find(std::uint32_t peer, fabric::Ev ev);
  void reschedule();

  std::vector<Watch> watches_;  // capacity taken at construction
  std::uint32_t watched_max_;
  std::uint32_t active_ = 0;
  std::uint64_t asked_ = 0;
  Time next_at_ = kNever;
  bool new_ = false;
};

template <typename TakeId>
void EvProber::ask(Time now, ControlQueue& out, TakeId take_id) {
  if (now < next_at_) return;
  for (Watch& w : watches_) {
    if (!w.active || w.next_at > now) continue;
    // Unanswered questions stretch with the number of bad EVs: 1,000 a second in all, each EV at
    // least once a second.
    const std::int64_t stretch = w.answers > 0 ? 1 : std::min<std::int64_t>(active_, 1000);
    w.next_at = now + Duration::ms(1) * stretch;
    w.answers = w.request_id != 0 ? 0 : w.answers;  // the last question was not answered
    ControlPacket* packet = out.add();
    if (packet == nullptr) {
      w.next_at = now + Duration::ms(1);  // its turn is not lost
      continue;
    }
    w.request_id = take_id();
    w.asked_at = now;
    ++asked_;
    packet->peer = w.peer;
    packet->port = w.ev.port;
    packet->fixed_ev = true;
    packet->entropy = w.ev.value;
    packet->data_class = true;
    write_header(*packet,
                 {.opcode = wire::Opcode::kEndpointRequest,
                  .dest_qpn = wire::kEndpointQpn,
                  .psn = Psn(w.request_id)},
                 wire::EndpointRequest{.op = wire::EndpointOp::kEvProbe});
  }
  reschedule();
}

}  // namespace weft::transport
