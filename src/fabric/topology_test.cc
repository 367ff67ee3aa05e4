#include "fabric/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "fabric/sample_topologies.h"

namespace weft::fabric {
namespace {

TEST(Divider, QuotientAndRemainderAreExact) {
  Prng prng(1);
  for (int i = 0; i < 200'000; ++i) {
    const auto divisor = static_cast<std::uint32_t>(prng.next() >> (32 + prng.below(32))) | 1u;
    const auto near =
        divisor * prng.below(0xffff'ffffu /
                             divisor);  // a multiple of the divisor, where rounding errors show
    const Divider divider(divisor);
    for (const std::uint32_t n :
         {near, near - 1, near + 1, 0xffff'ffffu, prng.below(0xffff'ffff)}) {
      ASSERT_EQ(divider.quotient(n), n / divisor) << n << " / " << divisor;
      ASSERT_EQ(divider.remainder(n), n % divisor) << n << " % " << divisor;
    }
  }
}

void expect_link(const Topology& topology, LinkId link, const NodeId& from, const NodeId& to,
                 std::vector<bool>& seen) {
  ASSERT_LT(link, topology.link_count());
  EXPECT_FALSE(seen[link]) << topology.describe(link);
  seen[link] = true;
  EXPECT_EQ(topology.ends(link).from, from) << topology.describe(link);
  EXPECT_EQ(topology.ends(link).to, to) << topology.describe(link);
  EXPECT_EQ(topology.is_last_hop(link), to.tier == Tier::kHost);
  const bool is_host_link = from.tier == Tier::kHost || to.tier == Tier::kHost;
  EXPECT_EQ(topology.rate(link),
            is_host_link ? topology.spec().host_rate : topology.spec().fabric_rate);
}

void expect_links_of_plane(const Topology& topology, std::uint32_t plane, std::vector<bool>& seen) {
  for (HostIndex host = 0; host < topology.host_count(); ++host) {
    const NodeId lower{plane, Tier::kHost, host}, upper{plane, Tier::kT0, topology.t0_of(host)};
    expect_link(topology, topology.host_up(plane, host), lower, upper, seen);
    expect_link(topology, topology.host_down(plane, host), upper, lower, seen);
  }
  const std::uint32_t t1s = topology.uplinks_of_t0(), t2s = topology.uplinks_of_t1();
  for (std::uint32_t t0 = 0; t0 < topology.switch_count(Tier::kT0); ++t0) {
    for (std::uint32_t j = 0; j < t1s; ++j) {
      const NodeId lower{plane, Tier::kT0, t0};
      const NodeId upper{plane, Tier::kT1, t0 / topology.t0_per_pod() * t1s + j};
      expect_link(topology, topology.t0_up(plane, t0, j), lower, upper, seen);
      expect_link(topology, topology.t0_down(plane, t0, j), upper, lower, seen);
    }
  }
  if (t2s == 0) return;
  for (std::uint32_t t1 = 0; t1 < topology.switch_count(Tier::kT1); ++t1) {
    for (std::uint32_t k = 0; k < t2s; ++k) {
      const NodeId lower{plane, Tier::kT1, t1}, upper{plane, Tier::kT2, t1 % t1s * t2s + k};
      expect_link(topology, topology.t1_up(plane, t1, k), lower, upper, seen);
      expect_link(topology, topology.t1_down(plane, t1, k), upper, lower, seen);
    }
  }
}

TEST(Topology, EveryLinkHasOneIdAndItsEnds) {
  for (const Topology& topology : sample_topologies()) {
    std::vector<bool> seen(topology.link_count());
    for (std::uint32_t plane = 0; plane < topology.plane_count(); ++plane) {
      expect_links_of_plane(topology, plane, seen);
    }
    for (LinkId link = 0; link < topology.link_count(); ++link) EXPECT_TRUE(seen[link]) << link;
  }
}

TEST(Topology, ReverseSwapsTheEnds) {
  for (const Topology& topology : sample_topologies()) {
    for (LinkId link = 0; link < topology.link_count(); ++link) {
      const LinkId back = topology.reverse(link);
      EXPECT_EQ(topology.reverse(back), link);
      EXPECT_EQ(topology.ends(back).from, topology.ends(link).to);
      EXPECT_EQ(topology.ends(back).to, topology.ends(link).from);
    }
  }
}

TEST(Topology, EveryHostHasItsOwnT0AndDownlink) {
  for (const Topology& topology : sample_topologies()) {
    for (HostIndex host = 0; host < topology.host_count(); ++host) {
      ASSERT_LT(topology.t0_of(host), topology.switch_count(Tier::kT0));
      ASSERT_LT(topology.downlink_of(host), topology.hosts_per_t0());
      EXPECT_EQ(topology.host_at(topology.t0_of(host), topology.downlink_of(host)), host);
    }
  }
}

TEST(Topology, RailLayoutPutsHostsOfOneRailOnTheSameT0s) {
  const Topology topology =
      must_make(with_rails(two_tier({.hosts = 96, .hosts_per_t0 = 4, .t1_count = 3}), 8));
  for (HostIndex host = 0; host < topology.host_count(); ++host) {
    // 12 machines with 8 NICs each: the 12 hosts of a rail fill three T0s.
    EXPECT_EQ(topology.t0_of(host), host % 8 * 3 + host / 8 / 4);
  }
}

TEST(Topology, EveryPathIsAChainFromHostToHost) {
  for (const Topology& topology : sample_topologies()) {
    Prng prng(topology.link_count());
    for (int i = 0; i < 200; ++i) {
      const HostIndex from = prng.below(topology.host_count()),
                      to = prng.below(topology.host_count());
      const std::uint32_t plane = prng.below(topology.plane_count());
      std::vector<std::vector<LinkId>> middles;
      for (std::uint32_t n = 0; n < topology.path_count(from, to); ++n) {
        const Topology::Path path = topology.path(plane, from, to, n);
        ASSERT_EQ(path.links[0], topology.host_up(plane, from));
        ASSERT_EQ(path.links[path.hops - 1], topology.host_down(plane, to));
        for (std::uint32_t hop = 1; hop < path.hops; ++hop) {
          ASSERT_EQ(topology.ends(path.links[hop]).from, topology.ends(path.links[hop - 1]).to);
        }
        middles.emplace_back(path.links, path.links + path.hops);
      }
      std::sort(middles.begin(), middles.end());
      EXPECT_EQ(std::adjacent_find(middles.begin(), middles.end()), middles.end())
          << "two paths are equal";
    }
  }
}

// Fabric designs from publications about MRC.
TEST(Topology, CountsMatchThePublishedDesigns) {
  const Topology small = must_make(two_tier({.hosts = 2'048, .hosts_per_t0 = 32, .t1_count = 32}));
  EXPECT_EQ(small.switch_count(), 96u);
  EXPECT_EQ(small.path_count(0, 32), 32u);

  const Topology four =
      must_make(two_tier({.hosts = 32'768, .planes = 4, .hosts_per_t0 = 128, .t1_count = 128}));
  EXPECT_EQ(four.switch_count(), 1'536u);

  const Topology eight =
      must_make(two_tier({.hosts = 131'072, .planes = 8, .hosts_per_t0 = 256, .t1_count = 256}));
  EXPECT_EQ(eight.switch_count(), 6'144u);
  EXPECT_EQ(eight.link_count(), 4'194'304u);
  EXPECT_EQ(eight.plane_count() * eight.path_count(0, 131'071), 2'048u);
  EXPECT_EQ(eight.plane_count() * eight.path_count(0, 255), 8u);
  EXPECT_EQ(eight.path(7, 0, 131'071, 255).hops, 4u);

  TopologySpec three = fat_tree({.radix = 64});
  three.needs_usids = false;  // 2,048 T0s: one more than eleven bits can number from 1
  const Topology deep = must_make(three);
  EXPECT_EQ(deep.host_count(), 65'536u);
  EXPECT_EQ(deep.switch_count(), 5'120u);
  EXPECT_EQ(deep.path(0, 0, 65'535, 0).hops, 6u);
}

TEST(Topology, FatTreeCountsFollowTheirRadix) {
  for (const auto& [radix, hosts] : {std::pair{8u, 128u}, {16u, 1'024u}, {32u, 8'192u}}) {
    const Topology topology = must_make(fat_tree({.radix = radix}));
    EXPECT_EQ(topology.host_count(), hosts);
    EXPECT_EQ(topology.switch_count(Tier::kT0), radix * radix / 2);
    EXPECT_EQ(topology.switch_count(Tier::kT1), radix * radix / 2);
    EXPECT_EQ(topology.switch_count(Tier::kT2), radix * radix / 4);
    EXPECT_EQ(topology.link_count(), 6 * hosts);
    EXPECT_EQ(topology.path_count(0, hosts - 1), radix * radix / 4);
  }
}

TEST(Topology, DescribesLinksForPeople) {
  const Topology topology = must_make(fat_tree({.radix = 4, .planes = 3}));
  EXPECT_EQ(topology.describe(topology.host_up(2, 5)), "host 5 -> T0 2 (plane 2)");
  EXPECT_EQ(topology.describe(topology.t0_down(0, 3, 1)), "T1 3 -> T0 3 (plane 0)");
  EXPECT_EQ(topology.describe(topology.t1_up(1, 3, 0)), "T1 3 -> T2 2 (plane 1)");
}

TEST(Topology, IdleRttIsTheSumOverTheLinksOfThePath) {
  for (const Topology& topology : sample_topologies()) {
    const HostIndex from = 0, to = topology.host_count() - 1;
    Duration expected;
    for (const std::uint32_t bytes : {4'200u, 100u}) {
      const Topology::Path path = topology.path(0, from, to, 0);
      for (std::uint32_t hop = 0; hop < path.hops; ++hop) {
        expected += topology.rate(path.links[hop]).time_for(bytes) + topology.spec().link_delay;
        if (hop > 0) expected += topology.spec().switch_delay;
      }
    }
    EXPECT_EQ(topology.idle_rtt(from, to, 4'200, 100), expected);
    Duration longest;
    for (HostIndex other = 0; other < topology.host_count(); ++other) {
      longest = std::max(longest, topology.idle_rtt(from, other, 4'200, 100));
    }
    EXPECT_EQ(topology.idle_rtt_max(4'200, 100), longest);
  }
}

TEST(Topology, IdleRttEqualsTheHandComputedValue) {
  TopologySpec spec = fat_tree({.radix = 4});  // 400 Gb/s: 20 ps a byte
  spec.link_delay = Duration::us(1);
  spec.switch_delay = Duration::ns(100);
  const Topology topology = must_make(spec);
  // In each direction six links of 1 us and five switches of 100 ns. Serialisation takes
  // 6 * (1000 + 50) * 20 ps in all.
  EXPECT_EQ(topology.idle_rtt(0, 15, 1'000, 50),
            Duration::us(12) + Duration::us(1) + Duration::ns(126));
  EXPECT_EQ(topology.idle_rtt(0, 1, 1'000, 50),
            Duration::us(4) + Duration::ns(200) + Duration::ns(42));
}

std::string refusal(TopologySpec spec) {
  const auto made = Topology::make(spec);
  return made ? "" : made.error().message;
}

TEST(Topology, RefusesInvalidSpecs) {
  const TopologySpec good = two_tier({.hosts = 64, .planes = 2, .hosts_per_t0 = 8, .t1_count = 8});
  EXPECT_EQ(refusal(good), "");
  TopologySpec spec = good;
  spec.hosts = 0;
  EXPECT_EQ(refusal(spec), "topology: hosts must be at least 1");
  spec = good;
  spec.hosts = 63;
  EXPECT_EQ(refusal(spec),
            "topology: hosts = 63 is not a multiple of hosts_per_t0 = 8; 56 or 64 would fit");
  spec.hosts = 5;
  EXPECT_EQ(refusal(spec),
            "topology: hosts = 5 is not a multiple of hosts_per_t0 = 8; 8 would fit");
  spec = good;
  spec.planes = 9;
  EXPECT_EQ(refusal(spec), "topology: planes = 9, at most 8 fit");
  spec = good;
  spec.t1_count = 0;
  EXPECT_EQ(refusal(spec), "topology: t1_count must be at least 1");
  spec = good;
  spec.host_rate = Rate();
  EXPECT_EQ(refusal(spec), "topology: host_rate is not set");
  spec = good;
  spec.fabric_rate = Rate();
  EXPECT_EQ(refusal(spec), "topology: fabric_rate is not set");
  spec = good;
  spec.switch_delay = Duration::ps(-1);
  EXPECT_EQ(refusal(spec), "topology: link_delay and switch_delay must not be negative");
  EXPECT_EQ(refusal(with_rails(good, 3)),
            "topology: hosts = 64 is not a multiple of rails = 3; 63 or 66 would fit");
  EXPECT_EQ(refusal(with_rails(good, 16)),
            "topology: hosts of one rail = 4 is not a multiple of hosts_per_t0 = 8; 8 would fit");
  spec = fat_tree({.radix = 8});
  spec.t0_per_pod = 5;
  EXPECT_EQ(
      refusal(spec),
      "topology: T0 switches (hosts / hosts_per_t0) = 32 is not a multiple of t0_per_pod = 5; "
      "30 or 35 would fit");
}

TEST(Topology, RefusesMoreSwitchesOrHostsThanUsidsCanNumber) {
  EXPECT_EQ(refusal(single_switch(2'047, 1)), "");
  EXPECT_EQ(refusal(single_switch(2'048, 1)),
            "topology: 2048 hosts of one T0, but a uSID numbers at most 2047; fewer, or no SRv6 "
            "(needs_usids = false)");
  EXPECT_NE(
      refusal(two_tier({.hosts = 2'048, .hosts_per_t0 = 1, .t1_count = 1})).find("T0 switches"),
      std::string::npos);
  TopologySpec spec = two_tier({.hosts = 4, .hosts_per_t0 = 2, .t1_count = 2'048});
  EXPECT_NE(refusal(spec).find("2048 T1 switches"), std::string::npos);
  spec.needs_usids = false;
  EXPECT_EQ(refusal(spec), "");
}

TEST(Topology, RefusesMoreLinksThanALinkIdCanNumber) {
  TopologySpec spec = single_switch(0xffff'ffff, 1);
  spec.needs_usids = false;
  EXPECT_EQ(refusal(spec), "topology: more than 4294967295 links");
  spec = two_tier({.hosts = 1'000'000, .hosts_per_t0 = 1, .t1_count = 0xffff'ffff});
  spec.needs_usids = false;
  EXPECT_EQ(refusal(spec), "topology: more than 4294967295 links");
  spec = fat_tree({.radix = 8});
  spec.needs_usids = false;
  spec.t1_per_pod = spec.t2_per_t1 = 0xffff'ffff;
  EXPECT_EQ(refusal(spec), "topology: more than 4294967295 links");
}

}  // namespace
}  // namespace weft::fabric
