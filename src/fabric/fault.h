// Faults as a list of timed events on links and hosts. `src/scenario` expands a scenario to this
// list, and a world carries it out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rate.h"
#include "base/time.h"
#include "fabric/topology.h"

namespace weft::fabric {

enum class FaultAction : std::uint8_t {
  kLinkDown,  // packets queued or in transit on `link` are lost
  kLinkUp,
  kLinkRate,  // `link` runs at `percent` of its rate
  kImpair,    // `impairment` applies from now on at `place`
  kHeal,      // the impairment with the same `id` ends
  kPause,     // the world stops driving `host`
  kResume,
  kCrash,  // `host` never runs again
};

enum class ImpairmentKind : std::uint8_t {
  kLoss,
  kBurstLoss,
  kReorder,
  kDuplicate,
  kCorrupt,
  kEvLoss,             // loss of packets that carry one of `entropies`
  kFirstTransportAck,  // the first copy of each Transport ACK is lost
  kFirstNak,
};

struct Impairment {
  ImpairmentKind kind = ImpairmentKind::kLoss;
  std::uint64_t share_of_2_32 = 0;         // probability, see Prng::chance
  std::uint32_t burst = 1;                 // kBurstLoss: mean packets per burst
  Duration delay_max{};                    // kReorder: the longest delay
  std::vector<std::uint32_t> entropies{};  // kEvLoss: the affected EVs
  friend bool operator==(const Impairment&, const Impairment&) = default;
};

enum class FaultPlace : std::uint8_t {
  kLink,  // the link FaultEvent::link
  kAllLinks,
  kNicReceive,  // the receiving NIC of every host, once per packet
};

struct FaultEvent {
  Time at{};
  FaultAction action = FaultAction::kImpair;
  std::uint32_t id = 0;  // index of the fault in its scenario
  FaultPlace place = FaultPlace::kLink;
  LinkId link = kNoLink;
  HostIndex host = 0;
  std::uint32_t percent = 100;
  bool carrier = true;  // kLinkDown, kLinkUp of a host's link: its port sees the change
  Impairment impairment{};
  friend bool operator==(const FaultEvent&, const FaultEvent&) = default;
};

// True if FaultEvent::host is what the event acts on. All other events act on the fabric.
constexpr bool is_of_host(FaultAction action) {
  return action == FaultAction::kPause || action == FaultAction::kResume ||
         action == FaultAction::kCrash;
}

// True if FaultEvent::link is what the event acts on.
constexpr bool names_link(const FaultEvent& event) {
  return event.action == FaultAction::kLinkDown || event.action == FaultAction::kLinkUp ||
         event.action == FaultAction::kLinkRate ||
         (event.action == FaultAction::kImpair && event.place == FaultPlace::kLink);
}

// The rate of a link at `percent` of `full`; at least 1 Mb/s, so that packets still leave.
constexpr Rate slowed(Rate full, std::uint32_t percent) {
  return Rate::bps(std::max<std::uint64_t>(full.bits_per_second() / 100 * percent, 1'000'000));
}

}  // namespace weft::fabric
