// AnswerTimes: how long may an answer take before it counts as missing?
//
// Computed from what a requestor knows at one moment. Made for one call and not kept. A NIC answers
// within a round trip and a full queue. A software peer is late by what schedulers add, and timers
// allow for that lateness (docs/decisions/0033, 0034).
#pragma once

#include <algorithm>

#include "base/time.h"
#include "transport/loss.h"
#include "transport/peer_kind.h"
#include "transport/retry_timer.h"

namespace weft::transport {

struct AnswerTimes {
  const PeerRules& peer;
  const LossDetector& loss;
  const DelaySpread& answers;  // delays of the peer's recent answers, over all QPs to it
  Duration base_rtt;
  Duration target;  // target queueing delay

  // How much longer a software peer's answers take than the network does, as this QP or another saw
  // it. Bounded: after a pause of seconds the next answers are not expected to take seconds.
  Duration lateness() const {
    if (!peer.measures_lateness) return Duration();
    return std::min(std::max(loss.spread(), answers.value() - base_rtt), RetryTimer::kSlackMax / 2);
  }
  // A NIC answers within a round trip and a full queue; a software peer may be later.
  Duration answer_time() const { return base_rtt + target + lateness(); }
  // How long the retry timer waits beyond its interval, which is made for networks of microseconds.
  // Before a software peer's first answer a queue of any length may stand in front of it, above all
  // of packets from other senders.
  Duration retry_slack() const {
    if (!peer.measures_lateness) return Duration();
    if (!answers.is_known()) return peer.slack_before_first_answer;
    return std::min((base_rtt + lateness()) * 2, RetryTimer::kSlackMax);
  }
  // A packet counts as lost when a packet that was sent this much later has arrived. A software
  // peer reads one port after the other: a packet that waits at one port is not lost.
  Duration proof_time() const {
    return loss.reorder_window(base_rtt) + base_rtt * peer.port_turn_rtts;
  }
  // A probe of the control class overtakes queued data: it counts as sent this much earlier.
  Duration queue_time() const { return base_rtt + target * 2; }
};

}  // namespace weft::transport
