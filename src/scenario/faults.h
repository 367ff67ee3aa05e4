// The faults of a scenario written out as timed events, and faults drawn from the seed. Pure
// values, made once before a run; a world carries them out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/prng.h"
#include "fabric/fault.h"
#include "fabric/topology.h"
#include "scenario/scenario.h"

namespace weft::scenario {

// Events in the order of time. Faults that overlap on one link or host are joined: it goes down
// with the first and up with the last; the slowest rate counts. Every impairment has an id of its
// own, and one kHeal unless it lasts. `carrier` is set where a host can see it: on the link towards
// the host, unless the fault is silent.
struct FaultPlan {
  std::vector<fabric::FaultEvent> events;
  Time healed_at{};  // when the last fault is over, crashes aside; kNever if one lasts to the end
};

// `first_flow_evs`: what `evs` of a fault counts (Fleet::first_flow_evs). REQUIRES faults that
// parse() accepted.
FaultPlan make_fault_plan(std::span<const FaultSpec> faults, const fabric::Topology& topology,
                          std::span<const std::uint32_t> first_flow_evs);

// One run's mix: 1 to count_max faults, each of a kind from the list; at most one host crashes.
// Each ends.
std::vector<FaultSpec> draw_faults(const RandomFaultSpec& spec, const fabric::Topology& topology,
                                   const TransportSpec& transport, Prng prng);

// For people: "link-down on host 0's link in plane 2, 300 us to 1000 us".
std::string describe(const FaultSpec& fault);

}  // namespace weft::scenario
