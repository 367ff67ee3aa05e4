// The time that nothing can beat on a fabric: bytes with framing over the narrowest
// capacity, plus one idle RTT. The measure that a run is held against.
#pragma once

#include "fabric/topology.h"
#include "scenario/scenario.h"
#include "scenario/workload.h"

namespace weft::scenario {

// Sets plan.ideal and what belongs to it from the plan's operations.
//
// Free flows and all-to-all: all bytes out of and into each host, each T0 and each pod, over what
// its links carry; the narrowest decides. Repeated flows: one message each, after the time that
// they are repeated for. All-reduce: the slowest chain of dependent steps, each a chunk and one way
// under way, since a step is released by what arrives.
void set_ideal(Plan& plan, const Scenario& scenario, const fabric::Topology& topology);

}  // namespace weft::scenario
