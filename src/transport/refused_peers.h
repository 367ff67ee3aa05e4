// RefusedPeers: finds out whether a peer is gone whose host says that no process has the peer's
// address.
//
// The host of a killed process refuses packets for it. Such a refusal comes sooner than a timeout,
// but anybody can forge it. So the QP probes the peer: three times, 250 ms apart, on each plane. It
// fails only if it hears nothing at all from its peer meanwhile (docs/decisions/0013).
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
    Time since;    // when the refusal came
    Time next_at;  // when the next probe is due, or the wait for an answer ends
  };
  // The state of a QP and its peer that a decision needs.
  struct Seen {
    bool may_send = true;  // false: a QP that failed, or does not send yet, does not probe
    Time last_heard;       // when the peer was last heard
  };
  enum class Step : std::uint8_t { kWait, kAsk, kFail };

  // The host of the QP's peer refused a packet.
  void on_refusal(Time now, OfQp& qp, const Seen& seen);

  // When the next probe or decision is due.
  Time next_at() const { return next_at_; }
  // Begins a round over the QPs: pass each to next_step().
  void begin_round() { next_at_ = kNever; }
  // The next step for this QP. kAsk: probe each plane, then call on_asked(). kFail: the peer is
  // gone, and the QP is no longer in question.
  Step next_step(Time now, OfQp& qp, const Seen& seen);
  // `sent`: the probe found room in the control queue. A probe that did not does not count.
  void on_asked(Time now, OfQp& qp, bool sent);

 private:
  void wake_at(Time at) { next_at_ = std::min(next_at_, at); }

  Time next_at_ = kNever;
};

}  // namespace weft::transport
