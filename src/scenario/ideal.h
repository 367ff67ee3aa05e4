// The ideal: the shortest time that a run can take on its fabric. It is the bytes with framing over
// the narrowest capacity, plus one idle RTT. Results are reported relative to it.
#pragma once

#include "fabric/topology.h"
#include "scenario/scenario.h"
#include "scenario/workload.h"

namespace weft::scenario {

// Sets plan.ideal, ideal_of_whole and ideal_rtt, and the limits goodput_limit_bps and
// flow_limit_bps, from the plan's operations.
//
// Independent flows and all-to-all: for each host, T0 and pod, all bytes out of it (or into it)
// divided by the capacity of its links; the largest quotient counts. Repeated flows: the time for
// which they repeat, plus one message of each flow. All-reduce: the slowest chain of dependent
// steps. Each step takes the time of one chunk and one one-way delay, because the arrival of a
// chunk starts the next step.
void set_ideal(Plan& plan, const Scenario& scenario, const fabric::Topology& topology);

}  // namespace weft::scenario
