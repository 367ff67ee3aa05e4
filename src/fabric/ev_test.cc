#include "fabric/ev.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fabric/sample_topologies.h"

namespace weft::fabric {
namespace {

TEST(Ev, Srv6ValueIsPlaneAndPath) {
  const Topology topology =
      must_make(two_tier({.hosts = 64, .planes = 8, .hosts_per_t0 = 8, .t1_count = 16}));
  EXPECT_EQ(ev_for_path(topology, Forwarding::kSrv6, 5, 0, 63, 9), (Ev{0x0500'0009, 5}));
  EXPECT_EQ(path_of_ev(topology, 0, 63, 0x0500'0009), 9u);
  EXPECT_EQ(path_of_ev(topology, 0, 1, 0x0500'0009), 0u);  // both hosts on one T0: one path
}

TEST(Ev, StevFieldsStartAtTheMostSignificantBit) {
  const Topology topology = must_make(fat_tree({.radix = 16}));  // STEV fields of 3 + 3 bits
  EXPECT_EQ(ev_for_path(topology, Forwarding::kStev, 0, 0, 1'023, 5 * 8 + 6).value,
            5u << 29 | 6u << 26);
  EXPECT_EQ(ev_for_path(topology, Forwarding::kStev, 0, 0, 63, 5).value, 5u << 29);  // same pod
  EXPECT_EQ(ev_for_path(topology, Forwarding::kStev, 0, 0, 1, 0).value, 0u);
}

TEST(DrawEvs, UsesEveryPathBeforeRepeatingOne) {
  for (const Topology& topology : sample_topologies()) {
    const HostIndex from = 0, to = topology.host_count() - 1;
    const std::uint32_t paths = topology.path_count(from, to);
    for (const std::uint32_t count : {1u, paths, paths + 1, 3 * paths}) {
      Prng prng(count);
      const auto evs = draw_evs(topology, Forwarding::kSrv6, from, to, count, prng);
      ASSERT_EQ(evs.size(), std::size_t{count} * topology.plane_count());
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> uses;
      std::set<std::uint32_t> values;
      for (std::size_t i = 0; i < evs.size(); ++i) {
        EXPECT_EQ(evs[i].port, i % topology.plane_count());
        EXPECT_EQ(evs[i].value >> 24, evs[i].port);
        EXPECT_TRUE(values.insert(evs[i].value).second);
        ++uses[{evs[i].port, path_of_ev(topology, from, to, evs[i].value)}];
      }
      for (const auto& [path, n] : uses) {
        EXPECT_GE(n, count / paths);
        EXPECT_LE(n, (count + paths - 1) / paths);
      }
    }
  }
}

TEST(DrawEvs, StevValuesCoverEveryPathEquallyOften) {
  const Topology topology = must_make(fat_tree({.radix = 8, .planes = 2}));
  const Forwarder forwarder(topology, Forwarding::kStev, 0);
  const HostIndex from = 3, to = 100;
  Prng prng(1);
  std::map<LinkId, int> uses;  // by uplink of the T1, which determines the path
  std::set<std::pair<std::uint32_t, std::uint32_t>> values;
  for (const Ev& ev : draw_evs(topology, Forwarding::kStev, from, to, 32, prng)) {
    RouteKey key{.from = from, .to = to, .entropy = ev.value, .plane = ev.port};
    const LinkId up = forwarder.next(topology.host_up(ev.port, from), key);
    ++uses[forwarder.next(up, key)];
    EXPECT_TRUE(values.emplace(ev.port, ev.value).second);
  }
  EXPECT_EQ(uses.size(), 2u * 16u);
  for (const auto& [link, n] : uses) EXPECT_EQ(n, 2);
}

TEST(DrawEvs, HashedValuesAreRandomAndPortsTakeTurns) {
  const Topology topology = must_make(single_switch(4, 3));
  Prng prng(1), again(1), other(2);
  const auto evs = draw_evs(topology, Forwarding::kHashed, 0, 1, 100, prng);
  EXPECT_EQ(evs.size(), 300u);
  for (std::size_t i = 0; i < evs.size(); ++i) EXPECT_EQ(evs[i].port, i % 3);
  EXPECT_EQ(evs, draw_evs(topology, Forwarding::kHashed, 0, 1, 100, again));
  EXPECT_NE(evs, draw_evs(topology, Forwarding::kHashed, 0, 1, 100, other));
}

TEST(DrawEvs, EveryPathIsEquallyLikelyInEveryPlane) {
  const Topology topology =
      must_make(two_tier({.hosts = 4, .planes = 4, .hosts_per_t0 = 2, .t1_count = 16}));
  Prng prng(1);
  std::vector<int> uses(4 * 16);
  for (int i = 0; i < 4'000; ++i) {
    for (const Ev& ev : draw_evs(topology, Forwarding::kSrv6, 0, 3, 4, prng)) {
      ++uses[ev.port * 16u + path_of_ev(topology, 0, 3, ev.value)];
    }
  }
  for (const int n : uses) EXPECT_NEAR(n, 1'000, 120);  // the standard deviation is 27
}

}  // namespace
}  // namespace weft::fabric
