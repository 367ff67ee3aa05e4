// Faults as a list of timed events on links and hosts: what a scenario is expanded to, and what a
// world carries out.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "fabric/topology.h"

namespace weft::fabric {

enum class FaultAction : std::uint8_t {
  kLinkDown,  // what is queued or under way on `link` is lost
  kLinkUp,
  kLinkRate,  // `link` runs at `percent` of its rate
  kImpair,    // from now on `impairment` applies at `link`, or where `place` says
  kHeal,      // the impairment of the same `id` ends
  kPause,     // `host` is not driven
  kResume,
  kCrash,  // `host` is gone for ever
};

enum class ImpairmentKind : std::uint8_t {
  kLoss,
  kBurstLoss,
  kReorder,
  kDuplicate,
  kCorrupt,
  kEvLoss,             // only packets that carry one of `entropies`
  kFirstTransportAck,  // the first for each QP is lost
  kFirstNak,
};

struct Impairment {
  ImpairmentKind kind = ImpairmentKind::kLoss;
  std::uint64_t share_of_2_32 = 0;         // probability, see Prng::chance
  std::uint32_t burst = 1;                 // mean length of a burst
  Duration delay_max{};                    // reorder
  std::vector<std::uint32_t> entropies{};  // kEvLoss
  friend bool operator==(const Impairment&, const Impairment&) = default;
};

enum class FaultPlace : std::uint8_t {
  kLink,  // `link`
  kAllLinks,
  kNicReceive,  // every receiving NIC (kEvLoss, kFirst*: the same); once a packet
};

struct FaultEvent {
  Time at{};
  FaultAction action = FaultAction::kImpair;
  std::uint32_t id = 0;  // which fault of the scenario this belongs to
  FaultPlace place = FaultPlace::kLink;
  LinkId link = kNoLink;
  HostIndex host = 0;
  std::uint32_t percent = 100;
  bool carrier = true;  // kLinkDown/kLinkUp of a host's link: the host's port sees it
  Impairment impairment{};
  friend bool operator==(const FaultEvent&, const FaultEvent&) = default;
};

}  // namespace weft::fabric
