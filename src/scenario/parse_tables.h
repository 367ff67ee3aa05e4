// The tables of a scenario file, one function each. Private to parse.cc and parse_*.cc.
#pragma once

#include "fabric/topology.h"
#include "scenario/reader.h"
#include "scenario/scenario.h"

namespace weft::scenario {

void read_topology(Reader& in, fabric::TopologySpec& out);
void read_switch(Reader& in, SwitchSpec& out, fabric::Forwarding& forwarding);
void read_transport(Reader& in, Report& report, TransportSpec& out);
void read_workload(Reader& in, Report& report, WorkloadSpec& out);
void read_fault(Reader& in, FaultSpec& out);
void read_random_faults(Reader& in, RandomFaultSpec& out);
void read_expect(Reader& in, ExpectSpec& out);
void read_run(Reader& in, RunSpec& out);

// What can be said only when the topology is known. `in` is the table that the value was read from.
void check_transport(Reader& in, TransportSpec& spec, const fabric::Topology& topology);
void check_workload(Reader& in, const Scenario& scenario, const fabric::Topology& topology);
void check_fault(Reader& in, const FaultSpec& spec, const fabric::Topology& topology,
                 const TransportSpec& transport);

}  // namespace weft::scenario
