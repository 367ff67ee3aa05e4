// AnswerTimes: how long may an answer take before it is missed?
//
// A view of what a requestor knows at one moment: pure, made for one call and not kept. A NIC answers
// within a round trip and a full queue. A software peer is late by what schedulers add, and timers
// wait for that (docs/decisions/0033, 0034).
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
  const DelaySpread& answers;  // how long the peer's answers took lately, over all QPs to it
  Duration base_rtt;
  Duration target;  // of queueing delay

  // How much longer a software peer's answers take than the network does, as this QP or another saw
  // it. A pause of seconds is not waited for again.
  Duration lateness() const {
    if (!peer.measures_lateness) return Duration();
    return std::min(std::max(loss.spread(), answers.value() - base_rtt), RetryTimer::kSlackMax / 2);
  }
  // A round trip and a full queue.
  Duration answer_time() const { return base_rtt + target + lateness(); }
  // How long the retry timer waits beyond its interval, which is made for networks of microseconds.
  // As long as a software peer has answered nothing there may be any queue before it, above all of
  // what others send to it.
  Duration retry_slack() const {
    if (!peer.measures_lateness) return Duration();
    if (!answers.is_known()) return peer.slack_before_first_answer;
    return std::min((base_rtt + lateness()) * 2, RetryTimer::kSlackMax);
  }
  // A packet is proven lost by the arrival of one that was sent so much later. A software peer looks
  // at one port after the other: what waits at one is not lost.
  Duration proof_time() const {
    return loss.reorder_window(base_rtt) + base_rtt * peer.port_turn_rtts;
  }
  // A probe of the control class overtakes what queues: it counts as sent that much earlier.
  Duration queue_time() const { return base_rtt + target * 2; }
};

}  // namespace weft::transport
