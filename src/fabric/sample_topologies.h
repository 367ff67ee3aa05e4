// The fabrics that tests of this folder use: every shape, both layouts, even and odd sizes.
#pragma once

#include <vector>

#include "fabric/topology.h"

namespace weft::fabric {

struct FatTree {
  std::uint32_t radix = 4;
  std::uint32_t planes = 1;
};

inline TopologySpec single_switch(std::uint32_t hosts, std::uint32_t planes) {
  return {.shape = Shape::kSingle, .hosts = hosts, .planes = planes, .host_rate = Rate::gbps(100)};
}

struct TwoTier {
  std::uint32_t hosts = 0, planes = 1, hosts_per_t0 = 0, t1_count = 0;
};
inline TopologySpec two_tier(const TwoTier& size) {
  return {.shape = Shape::kTwoTier,
          .hosts = size.hosts,
          .planes = size.planes,
          .hosts_per_t0 = size.hosts_per_t0,
          .t1_count = size.t1_count,
          .host_rate = Rate::gbps(100),
          .fabric_rate = Rate::gbps(200)};
}

// The k-ary fat tree: k pods, each with k / 2 T0s and k / 2 T1s; k / 2 hosts per T0, k^3 / 4 hosts
// in all.
inline TopologySpec fat_tree(const FatTree& tree) {
  const std::uint32_t half = tree.radix / 2;
  return {.shape = Shape::kThreeTier,
          .hosts = tree.radix * half * half,
          .planes = tree.planes,
          .hosts_per_t0 = half,
          .t0_per_pod = half,
          .t1_per_pod = half,
          .t2_per_t1 = half,
          .host_rate = Rate::gbps(400),
          .fabric_rate = Rate::gbps(400)};
}

inline TopologySpec with_rails(TopologySpec spec, std::uint32_t rails) {
  spec.layout = Layout::kRail;
  spec.rails = rails;
  return spec;
}

inline Topology must_make(const TopologySpec& spec) { return Topology::make(spec).value(); }

inline std::vector<Topology> sample_topologies() {
  const TopologySpec uneven{.shape = Shape::kThreeTier,
                            .hosts = 90,
                            .planes = 2,
                            .hosts_per_t0 = 3,
                            .t0_per_pod = 5,
                            .t1_per_pod = 7,
                            .t2_per_t1 = 2,
                            .host_rate = Rate::gbps(100),
                            .fabric_rate = Rate::gbps(400)};
  return {must_make(single_switch(1, 1)),
          must_make(single_switch(5, 3)),
          must_make(two_tier({.hosts = 4, .hosts_per_t0 = 4, .t1_count = 1})),
          must_make(two_tier({.hosts = 32, .planes = 8, .hosts_per_t0 = 8, .t1_count = 8})),
          must_make(two_tier({.hosts = 60, .planes = 5, .hosts_per_t0 = 6, .t1_count = 7})),
          must_make(with_rails(
              two_tier({.hosts = 96, .planes = 2, .hosts_per_t0 = 4, .t1_count = 3}), 8)),
          must_make(fat_tree({.radix = 4})),
          must_make(fat_tree({.radix = 8, .planes = 4})),
          must_make(with_rails(fat_tree({.radix = 8}), 4)),
          must_make(uneven),
          must_make(with_rails(uneven, 3))};
}

}  // namespace weft::fabric
