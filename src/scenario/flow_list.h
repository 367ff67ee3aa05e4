// The flows of a workload before they are assigned to hosts and QPs: one generator for each kind.
// Private to workload.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "fabric/topology.h"
#include "scenario/workload.h"

namespace weft::scenario {

inline constexpr HostIndex kNoHost = 0xffff'ffff;

struct Flow {
  HostIndex from = 0, to = 0;
  std::uint64_t bytes = 0;
  Duration start{};
  std::uint32_t qp = 0;
  HostIndex after[2] = {kNoHost, kNoHost};  // starts when immediates from these hosts have arrived
  std::uint32_t after_receives = 0;
  bool with_immediate = false, bad_rkey = false, victim = false;
  std::uint32_t listed = kNoEnd;
};

// The flows of each host are in the order in which the host starts them.
std::vector<Flow> list_flows(const WorkloadSpec& spec, const fabric::Topology& topology,
                             Prng& prng);

}  // namespace weft::scenario
