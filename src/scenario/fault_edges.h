// Each fault as pairs of edges (start and end), one pair for each link or host that it touches.
// Private to faults.cc.
#pragma once

#include <span>
#include <vector>

#include "fabric/fault.h"
#include "fabric/topology.h"
#include "scenario/scenario.h"

namespace weft::scenario {

// The event that this edge causes, unless another fault holds the same link or host.
struct FaultEdge {
  fabric::FaultEvent event;
  bool ends = false;
};

struct FaultEdges {
  std::vector<FaultEdge> edges;  // unsorted
  Time over{};  // time of the last edge, without crashes; kNever if a fault lasts to the end
};

FaultEdges edges_of(std::span<const FaultSpec> faults, const fabric::Topology& topology,
                    std::span<const std::uint32_t> first_flow_evs);

}  // namespace weft::scenario
