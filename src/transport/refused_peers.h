// RefusedPeers: a peer's host says that no process has the peer's address. Is the peer gone?
//
// The host of a killed process refuses what comes for it. That is better than silence, but anybody
// can forge it. So the QP asks: three times, 250 ms apart, on each plane. It fails only if it hears
// nothing at all from its peer meanwhile (docs/decisions/0013).
//
// Owned by the endpoint, which sends the probes and fails the QP. The state of a QP is an `OfQp`
// inside it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace weft::transport {

class RefusedPeers {
 public:
  struct OfQp {
    bool is_in_question = false;
    std::uint8_t times_asked = 0;
    Time since;    // the refusal
    Time next_at;  // the next question, or the end of waiting for an answer
  };
  // What is known of a QP and its peer.
  struct Seen {
    bool may_send = true;  // the QP: one that failed, or was not started again, asks nothing
    Time last_heard;       // from the peer
  };
  enum class Step : std::uint8_t { kWait, kAsk, kFail };

  // The host of the QP's peer refused a packet.
  void on_refusal(Time now, OfQp& qp, const Seen& seen);

  // When the QPs in question must be looked at.
  Time next_at() const { return next_at_; }
  // Begins a round over the QPs: each is passed to next_step().
  void begin_round() { next_at_ = kNever; }
  // What to do for this QP. kAsk: probe each plane, then on_asked(). kFail: the peer is gone, and
  // the QP no longer in question.
  Step next_step(Time now, OfQp& qp, const Seen& seen);
  // `sent`: the question found room in the control queue; otherwise it does not count.
  void on_asked(Time now, OfQp& qp, bool sent);

 private:
  void wake_at(Time at) { next_at_ = std::min(next_at_, at); }

  Time next_at_ = kNever;
};

}  // namespace weft::transport
