// The time that nothing can beat on a fabric (decision 22): bytes with framing over the narrowest capacity, plus one
// idle RTT. The measure that a run is held against.
#pragma once

#include "fabric/topology.h"
#include "scenario/scenario.h"
#include "scenario/workload.h"

namespace weft::scenario {

// Sets plan.ideal and what belongs to it from the plan's operations.
//
// Free flows and all-to-all: all bytes out of and into each host, each T0 and each pod, over what its links carry; the
// narrowest decides. All-reduce: the sum over its dependent steps. Repeated flows count as one message each: their
// ideal is that of a single round.
void set_ideal(Plan& plan, const Scenario& scenario, const fabric::Topology& topology);

}  // namespace weft::scenario
