// PeerKind: what is at the other end of a QP, and every constant that depends on it.
//
// A NIC speaks MRC 1.0 and nothing else. Between two ends of Weft's software more is allowed: both
// cost a core for each packet, both are late by milliseconds when a scheduler takes their core
// away, and both understand what MRC has no words for. A rule that holds between software ends only
// asks `PeerRules` of its QP, and nothing else. The simulator's endpoints are NICs.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "wire/peer_kind.h"

namespace weft::transport {

using wire::PeerKind;

struct PeerRules {
  // --- our acknowledgements, as responder
  // A SACK after so many bytes.
  std::uint32_t sack_bytes = 16 * 1024;
  // While something is missing a SACK at least that often too: at a low rate `sack_bytes` take
  // long, and the requestor waits to learn what is lost (docs/decisions/0017). 0: by bytes only.
  Duration sack_interval_with_holes{};
  // Data that no SACK reported yet, and then none for that long: a SACK on every plane, since the
  // packet that asked for one may be lost (docs/decisions/0017). 0: never unasked.
  Duration sack_after_quiet{};
  // A SACK that may not have got through is sent again by another plane (docs/decisions/0028).
  bool repeats_sacks = false;
  // Acknowledgements may wait for data in the same direction: EndpointConfig::answers_delay.
  bool delays_answers = false;
  // SACK.mpr is the responder's receive budget, in units of so many bytes
  // (docs/decisions/0011). 0: SACK.mpr is MRC's, in units of 128 PSNs.
  std::uint32_t budget_unit_bytes = 0;

  // --- our timers and probes, as requestor
  // The peer's answers are late by what schedulers add: timers wait for as long as answers have
  // taken lately, and late packets teach the loss detector (docs/decisions/0017, 0033).
  bool measures_lateness = false;
  // Slack of the retry timer before the first RTT sample: several initial windows queued at
  // 1 Gb/s (docs/decisions/0034).
  Duration slack_before_first_answer{};
  // The peer looks at one port after the other: so many base RTTs may pass between two packets
  // that arrived together before it has seen both.
  std::int64_t port_turn_rtts = 0;
  // A sender whose window is full of what may be lost probes as soon as the answer would prove
  // the loss (docs/decisions/0032).
  bool probes_when_stuck = false;
  // Reliability probes over all QPs of an endpoint (ProbeBudget). 0: no bound.
  std::uint32_t probes_per_ms = 0;

  // --- judgement of paths
  // So many losses of the other EVs are assumed besides those seen: with few EVs none seen says
  // little (docs/decisions/0011).
  std::uint32_t prior_losses = 0;
  // Losses of a plane judge its EVs when they have gone on for that long (docs/decisions/0017).
  Duration loss_confirmation{};

  // --- congestion
  // No switch may mark or trim: delay that lasts and much loss count as congestion
  // (UnmarkedCongestion).
  bool unmarked_congestion = false;
  // The delay target in base RTTs, where none is configured. 0: the specification's.
  std::int64_t target_rtts = 0;
};

inline constexpr PeerRules kNicRules{};

inline constexpr PeerRules kSoftwareRules{
    // A SACK costs as much as a run of packets: one for three of them; the requestor asks for more
    // when its window is small.
    .sack_bytes = 192u << 10,
    .sack_interval_with_holes = Duration::us(300),
    .sack_after_quiet = Duration::us(300),
    .repeats_sacks = true,
    .delays_answers = true,
    .budget_unit_bytes = 16u << 10,
    .measures_lateness = true,
    .slack_before_first_answer = Duration::ms(40),
    .port_turn_rtts = 2,
    .probes_when_stuck = true,
    .probes_per_ms = 20,  // a tenth of a core
    .prior_losses = 1,
    .loss_confirmation = Duration::ms(1),
    .unmarked_congestion = true,
    .target_rtts = 4,
};

// The rules of a QP whose peer is of that kind. They live as long as the program.
constexpr const PeerRules& rules_of(PeerKind kind) {
  return kind == PeerKind::kSoftware ? kSoftwareRules : kNicRules;
}

}  // namespace weft::transport
