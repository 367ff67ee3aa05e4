// The ideal: a lower bound of a run's time on its fabric. It is the bytes with framing over the
// narrowest capacity, plus one idle RTT. Results are given relative to it.
#pragma once

#include "fabric/topology.h"
#include "scenario/scenario.h"
#include "scenario/workload.h"

namespace weft::scenario {

// Sets plan.ideal and its companions from the plan's operations.
//
// Free flows and all-to-all: all bytes out of and into each host, each T0 and each pod, divided by
// the capacity of its links; the largest quotient counts. Repeated flows: one message each, after
// the time for which they are repeated. All-reduce: the slowest chain of dependent steps. Each step
// is one chunk and one one-way delay, because the arrival of a chunk releases the next step.
void set_ideal(Plan& plan, const Scenario& scenario, const fabric::Topology& topology);

}  // namespace weft::scenario
