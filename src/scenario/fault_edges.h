// The start and the end of each fault, as one pair of FaultChanges for each link or host that the
// fault affects. Private to faults.cc.
#pragma once

#include <span>
#include <vector>

#include "fabric/fault.h"
#include "fabric/topology.h"
#include "scenario/scenario.h"

namespace weft::scenario {

// The start of a fault on one link or host, or its end (`ends`). `event` is left out while another
// fault affects the same link or host.
struct FaultChange {
  fabric::FaultEvent event;
  bool ends = false;
};

struct FaultChanges {
  std::vector<FaultChange> edges;  // unsorted
  // when the last fault ends, not counting crashes; kNever if a fault lasts to the end of the run
  Time over{};
};

FaultChanges changes_of(std::span<const FaultSpec> faults, const fabric::Topology& topology,
                        std::span<const std::uint32_t> first_flow_evs);

}  // namespace weft::scenario
