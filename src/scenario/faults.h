// Turns the faults of a scenario into timed events, and draws random faults from the seed. The
// results are values, made once before a run; the world applies the events.
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

// Events in the order of time. Faults that overlap on one link or host are merged: a link goes down
// with the first fault and comes up with the last, and the slowest rate counts. Each impairment has
// its own id, and exactly one kHeal, unless it lasts to the end. `carrier` is set if a host sees
// the link go down: on the link towards the host, unless the fault is silent.
struct FaultPlan {
  std::vector<fabric::FaultEvent> events;
  // when the last fault ends, not counting crashes; kNever if a fault lasts to the end of the run
  Time healed_at{};
};

// `first_flow_evs`: from Fleet::first_flow_evs(); the `evs` of a fault are indices into it.
// REQUIRES faults that parse() accepted.
FaultPlan make_fault_plan(std::span<const FaultSpec> faults, const fabric::Topology& topology,
                          std::span<const std::uint32_t> first_flow_evs);

// Draws the faults of one run: 1 to count_max faults, of the kinds that `spec` lists. At most one
// host crashes. Every fault except a crash ends.
std::vector<FaultSpec> draw_faults(const RandomFaultSpec& spec, const fabric::Topology& topology,
                                   const TransportSpec& transport, Prng prng);

// A description for users: "link-down on host 0's link in plane 2, 300 us to 1000 us".
std::string describe(const FaultSpec& fault);

}  // namespace weft::scenario
