// The tables of a scenario file, one function for each. Private to parse.cc and parse_*.cc.
#pragma once

#include "config/reader.h"
#include "fabric/topology.h"
#include "scenario/names.h"
#include "scenario/scenario.h"

namespace weft::scenario {

void read_topology(config::Reader& in, fabric::TopologySpec& out);
void read_switch(config::Reader& in, SwitchSpec& out, fabric::Forwarding& forwarding);
void read_transport(config::Reader& in, config::Report& report, TransportSpec& out);
void read_workload(config::Reader& in, config::Report& report, WorkloadSpec& out);
void read_fault(config::Reader& in, FaultSpec& out);
void read_random_faults(config::Reader& in, RandomFaultSpec& out);
void read_expect(config::Reader& in, ExpectSpec& out);
void read_run(config::Reader& in, RunSpec& out);

// Checks that need the topology. `in` is the table that the value was read from.
void check_transport(config::Reader& in, TransportSpec& spec, const fabric::Topology& topology);
void check_workload(config::Reader& in, const Scenario& scenario, const fabric::Topology& topology);
void check_fault(config::Reader& in, const FaultSpec& spec, const fabric::Topology& topology,
                 const TransportSpec& transport);

}  // namespace weft::scenario
