// Faults as pairs of edges, start and end, one pair for each link or host that a fault touches.
// Private to faults.cc.
#pragma once

#include <span>
#include <vector>

#include "fabric/fault.h"
#include "fabric/topology.h"
#include "scenario/scenario.h"

namespace weft::scenario {

// The event that happens if nothing else acts on the same link or host.
struct FaultEdge {
  fabric::FaultEvent event;
  bool ends = false;
};

struct FaultEdges {
  std::vector<FaultEdge> edges;  // in no order
  Time over{};                   // of the last one, crashes aside; kNever if one lasts
};

FaultEdges edges_of(std::span<const FaultSpec> faults, const fabric::Topology& topology,
                    std::span<const std::uint32_t> first_flow_evs);

}  // namespace weft::scenario
