// The flows of a workload before they are sorted onto hosts and QPs: one generator a kind. Private
// to workload.cc.
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
  HostIndex after[2] = {kNoHost, kNoHost};  // waits for immediates of these
  std::uint32_t after_receives = 0;
  bool with_immediate = false, bad_rkey = false, victim = false;
  std::uint32_t listed = kNoEnd;
};

// In the order in which each host starts its own.
std::vector<Flow> list_flows(const WorkloadSpec& spec, const fabric::Topology& topology,
                             Prng& prng);

}  // namespace weft::scenario
