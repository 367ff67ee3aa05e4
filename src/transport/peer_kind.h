// PeerKind: what is at the other end of a QP, and every constant that depends on it.
//
// A NIC speaks MRC 1.0 and nothing else. Two software ends of Weft may do more: both spend CPU time
// on each packet, both are late by milliseconds when a scheduler takes their core away, and both
// understand messages that MRC does not have. Code whose behaviour differs between software ends
// and NICs asks the `PeerRules` of its QP, and nothing else. The simulator's endpoints are NICs.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "wire/peer_kind.h"

namespace weft::transport {

using wire::PeerKind;

struct PeerRules {
  // --- our acknowledgements, as responder
  // A SACK is due after this many bytes.
  std::uint32_t sack_bytes = 16 * 1024;
  // While PSNs are missing, a SACK is due at least this often too: at a low rate `sack_bytes` take
  // long to arrive, and the requestor waits to learn which packets are lost (docs/decisions/0017).
  // 0: by bytes only.
  Duration sack_interval_with_holes{};
  // When data has come that no SACK reported, and then none for this long, a SACK is sent on every
  // plane: the packet that asked for a SACK may be lost (docs/decisions/0017). 0: no SACK is sent
  // unasked.
  Duration sack_after_quiet{};
  // A SACK that may be lost is repeated on another plane (docs/decisions/0028).
  bool repeats_sacks = false;
  // Answers may wait for data in the same direction: EndpointConfig::answers_delay.
  bool delays_answers = false;
  // SACK.mpr is the responder's receive budget, in units of this many bytes (docs/decisions/0011).
  // 0: SACK.mpr has MRC's meaning, in units of 128 PSNs.
  std::uint32_t budget_unit_bytes = 0;

  // --- our timers and probes, as requestor
  // The peer's answers are late by scheduling delays. Timers are extended by the delays of recent
  // answers, and late packets teach the loss detector (docs/decisions/0017, 0033).
  bool measures_lateness = false;
  // Slack of the retry timer before the first RTT sample: several initial windows queued at
  // 1 Gb/s (docs/decisions/0034).
  Duration slack_before_first_answer{};
  // The peer reads one port after the other: packets that arrived together on two ports may be seen
  // this many base RTTs apart.
  std::int64_t port_turn_rtts = 0;
  // A sender that is blocked by packets that may be lost probes as soon as the answer would prove
  // the loss (docs/decisions/0032).
  bool probes_when_stuck = false;
  // Most reliability probes per millisecond, over all QPs of an endpoint (ProbeBudget). 0: no
  // bound.
  std::uint32_t probes_per_ms = 0;

  // --- judgement of paths
  // Losses of the other EVs that are assumed besides those seen: with few EVs it means little that none
  // was seen (docs/decisions/0011).
  std::uint32_t prior_losses = 0;
  // Losses of a plane count against its EVs only when they have gone on for this long
  // (docs/decisions/0017).
  Duration loss_confirmation{};

  // --- congestion
  // Switches may neither mark nor trim: lasting delay and much loss count as congestion
  // (UnmarkedCongestion).
  bool unmarked_congestion = false;
  // The default delay target, in base RTTs. 0: the specification's.
  std::int64_t target_rtts = 0;
};

inline constexpr PeerRules kNicRules{};

inline constexpr PeerRules kSoftwareRules{
    // A SACK costs as much as a burst of packets, so one is sent per three bursts. The requestor
    // asks for more when its window is small.
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
    .probes_per_ms = 20,  // costs a tenth of a core
    .prior_losses = 1,
    .loss_confirmation = Duration::ms(1),
    .unmarked_congestion = true,
    .target_rtts = 4,
};

// The rules of a QP with a peer of that kind. The returned object lives as long as the program.
constexpr const PeerRules& rules_of(PeerKind kind) {
  return kind == PeerKind::kSoftware ? kSoftwareRules : kNicRules;
}

}  // namespace weft::transport
