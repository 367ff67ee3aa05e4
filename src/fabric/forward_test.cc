#include "fabric/forward.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/hash.h"
#include "base/prng.h"
#include "fabric/ev.h"
#include "fabric/sample_topologies.h"

namespace weft::fabric {
namespace {

// The links that a packet takes. The last one is kNoLink if a switch drops the packet or the packet
// never arrives.
std::vector<LinkId> walk(const Topology& topology, const Forwarder& forwarder, RouteKey key) {
  std::vector<LinkId> links{topology.host_up(key.plane, key.from)};
  while (links.back() != kNoLink && !topology.is_last_hop(links.back())) {
    links.push_back(links.size() < 12 ? forwarder.next(links.back(), key) : kNoLink);
  }
  return links;
}

std::vector<LinkId> links_of(const Topology::Path& path) {
  return {path.links, path.links + path.hops};
}

struct Pair {
  HostIndex from, to;
  std::uint32_t plane;
};
Pair draw_pair(const Topology& topology, Prng& prng) {
  const HostIndex from = prng.below(topology.host_count());
  return {from, prng.below(topology.host_count()), prng.below(topology.plane_count())};
}

TEST(Forwarder, Srv6AndStevFollowThePath) {
  for (const Topology& topology : sample_topologies()) {
    const Forwarder srv6(topology, Forwarding::kSrv6, 0), stev(topology, Forwarding::kStev, 0);
    Prng prng(topology.link_count());
    for (int i = 0; i < 100; ++i) {
      const auto [from, to, plane] = draw_pair(topology, prng);
      for (std::uint32_t path = 0; path < topology.path_count(from, to); ++path) {
        const std::vector<LinkId> expected = links_of(topology.path(plane, from, to, path));
        RouteKey key{.from = from, .to = to, .plane = plane};
        key.usids = usids_for(topology, plane, from, to, path);
        ASSERT_EQ(walk(topology, srv6, key), expected);
        key = {.from = from, .to = to, .plane = plane};
        key.entropy = ev_for_path(topology, Forwarding::kStev, plane, from, to, path).value;
        ASSERT_EQ(walk(topology, stev, key), expected);
      }
    }
  }
}

TEST(Forwarder, AnyEntropyReachesTheDestinationOverAValidPath) {
  for (const Topology& topology : sample_topologies()) {
    for (const Forwarding mode : {Forwarding::kStev, Forwarding::kHashed}) {
      const Forwarder forwarder(topology, mode, 7);
      Prng prng(topology.link_count());
      for (int i = 0; i < 1'000; ++i) {
        const auto [from, to, plane] = draw_pair(topology, prng);
        const RouteKey key{.from = from,
                           .to = to,
                           .entropy = static_cast<std::uint32_t>(prng.next()),
                           .plane = plane};
        const std::vector<LinkId> links = walk(topology, forwarder, key);
        ASSERT_EQ(links.back(), topology.host_down(plane, to));
        ASSERT_EQ(links.size(), topology.path(plane, from, to, 0).hops);
        for (std::size_t hop = 1; hop < links.size(); ++hop) {
          ASSERT_EQ(topology.ends(links[hop]).from, topology.ends(links[hop - 1]).to);
        }
      }
    }
  }
}

// The path of the README of this folder: T0 5, T1 42, T0 9, host 17 in plane 3.
TEST(Forwarder, FollowsTheUsidListOfTheWorkedExample) {
  const Topology topology = must_make(
      two_tier({.hosts = 0x10 * 0x20, .planes = 8, .hosts_per_t0 = 0x20, .t1_count = 0x40}));
  const HostIndex from = topology.host_at(0x05 - 1, 0), to = topology.host_at(0x09 - 1, 0x11 - 1);
  RouteKey key{.from = from, .to = to, .plane = 3};
  key.usids = usids_for(topology, 3, from, to, 0x2a - 1);
  EXPECT_EQ(key.usids, (UsidList{{0x1805, 0x582a, 0x1809, 0x9811, 0, 0}}));

  const Forwarder forwarder(topology, Forwarding::kSrv6, 0);
  LinkId link = forwarder.next(topology.host_up(3, from), key);
  EXPECT_EQ(key.usids, (UsidList{{0x582a, 0x1809, 0x9811, 0, 0, 0}}));
  link = forwarder.next(link, key);
  EXPECT_EQ(key.usids, (UsidList{{0x1809, 0x9811, 0, 0, 0, 0}}));
  link = forwarder.next(link, key);
  EXPECT_EQ(key.usids, (UsidList{{0x9811, 0, 0, 0, 0, 0}}));
  EXPECT_EQ(link, topology.host_down(3, to));
}

bool is_dropped(const Topology& topology, const Forwarder& forwarder, const RouteKey& key) {
  return walk(topology, forwarder, key).back() == kNoLink;
}

TEST(Forwarder, APacketWithAWrongUsidIsDropped) {
  for (const Topology& topology : sample_topologies()) {
    const Forwarder forwarder(topology, Forwarding::kSrv6, 0);
    Prng prng(topology.link_count());
    for (int i = 0; i < 300; ++i) {
      const auto [from, to, plane] = draw_pair(topology, prng);
      const std::uint32_t path = prng.below(topology.path_count(from, to));
      RouteKey key{.from = from, .to = to, .plane = plane};
      key.usids = usids_for(topology, plane, from, to, path);
      const UsidList right = key.usids;
      for (const int flip : {0x0001, 0x4000, 0x8000}) {  // not the uSID of the first switch
        key.usids.usid[0] = static_cast<std::uint16_t>(right.usid[0] ^ flip);
        EXPECT_TRUE(is_dropped(topology, forwarder, key)) << std::hex << key.usids.usid[0];
      }
      key.usids = right;
      std::uint16_t& usid = key.usids.usid[prng.below(topology.path(plane, from, to, path).hops)];
      const std::uint16_t good = usid;
      // uSIDs of another plane, with numbers that no switch has, and the end of the list.
      for (const int bad : {good ^ 0x0800, good & 0xf800, good | 0x07ff, 0}) {
        usid = static_cast<std::uint16_t>(bad);
        EXPECT_TRUE(is_dropped(topology, forwarder, key)) << std::hex << good << " " << usid;
      }
    }
  }
}

TEST(Forwarder, RandomUsidsNeverLeaveTheFabric) {
  for (const Topology& topology : sample_topologies()) {
    const Forwarder forwarder(topology, Forwarding::kSrv6, 0);
    Prng prng(topology.link_count());
    for (int i = 0; i < 20'000; ++i) {
      const LinkId arrived = prng.below(topology.link_count());
      if (topology.is_last_hop(arrived)) continue;
      const NodeId here = topology.ends(arrived).to;
      RouteKey key;
      key.usids.usid[0] = usid_of(topology, here);
      key.usids.usid[1] =
          make_usid(static_cast<UsidRole>(prng.below(4)), here.plane, prng.below(64));
      const LinkId next = forwarder.next(arrived, key);
      if (next == kNoLink) continue;
      ASSERT_LT(next, topology.link_count());
      EXPECT_EQ(topology.ends(next).from, here);
      EXPECT_EQ(usid_of(topology, topology.ends(next).to), key.usids.usid[0]);
    }
  }
}

// A source route can return to its sender: a fabric prober sends a packet to a T1 and back.
TEST(Forwarder, AUsidListCanLeadBackToTheSender) {
  const Topology topology = must_make(two_tier({.hosts = 8, .hosts_per_t0 = 4, .t1_count = 2}));
  const Forwarder forwarder(topology, Forwarding::kSrv6, 0);
  RouteKey key{.from = 1, .to = 1};
  key.usids.usid = {usid_of(topology, {0, Tier::kT0, 0}), usid_of(topology, {0, Tier::kT1, 1}),
                    usid_of(topology, {0, Tier::kT0, 0}), usid_of(topology, {0, Tier::kHost, 1})};
  const std::vector<LinkId> expected{topology.host_up(0, 1), topology.t0_up(0, 0, 1),
                                     topology.t0_down(0, 0, 1), topology.host_down(0, 1)};
  EXPECT_EQ(walk(topology, forwarder, key), expected);
}

// Sum of (seen - expected)^2 / expected. For a uniform distribution over n cells its mean is n - 1
// and its standard deviation sqrt(2 (n - 1)).
double chi_square(const std::vector<int>& seen, int draws) {
  const double expected = draws / static_cast<double>(seen.size());
  double sum = 0;
  for (const int n : seen) sum += (n - expected) * (n - expected) / expected;
  return sum;
}

// With 64 cells the mean is 63 and the standard deviation 11: the bounds are 3.5 standard
// deviations below the mean and 4.2 above it.
void expect_even(const std::vector<int>& seen, int draws) {
  ASSERT_EQ(seen.size(), 64u);
  EXPECT_GT(chi_square(seen, draws), 25);
  EXPECT_LT(chi_square(seen, draws), 110);
}

TEST(Forwarder, HashSpreadsEvenlyOverUplinks) {
  const Topology topology =
      must_make(two_tier({.hosts = 4'096, .hosts_per_t0 = 64, .t1_count = 64}));
  const Forwarder forwarder(topology, Forwarding::kHashed, 3);
  const auto uplink = [&](const RouteKey& key) {
    return topology.place(walk(topology, forwarder, key)[1]).uplink;
  };
  Prng prng(5);
  std::vector<int> by_entropy(64), by_flow(64), by_source(64);
  for (std::uint32_t i = 0; i < 64'000; ++i) {
    ++by_entropy[uplink({.from = 0, .to = 4'000, .entropy = i})];
    ++by_flow[uplink({.from = prng.below(64), .to = 64 + prng.below(4'032), .entropy = 0})];
    ++by_source[uplink({.from = i % 2'048, .to = 2'048 + i % 2'048, .entropy = i / 2'048})];
  }
  expect_even(by_entropy, 64'000);
  expect_even(by_flow, 64'000);
  expect_even(by_source, 64'000);
}

TEST(Forwarder, TiersChooseUplinksIndependently) {
  const Topology topology = must_make(fat_tree({.radix = 16}));  // 8 x 8 paths
  const Forwarder forwarder(topology, Forwarding::kHashed, 3);
  std::vector<int> by_path(64);
  for (std::uint32_t i = 0; i < 64'000; ++i) {
    const auto links = walk(topology, forwarder, {.from = 0, .to = 1'023, .entropy = i});
    ++by_path[topology.place(links[1]).uplink * 8 + topology.place(links[2]).uplink];
  }
  expect_even(by_path, 64'000);
}

// Fixed value: a change of the hash function changes every simulated run.
TEST(Forwarder, HashedPathsEqualTheGoldenHash) {
  TraceHash hash;
  for (const Topology& topology : sample_topologies()) {
    const Forwarder forwarder(topology, Forwarding::kHashed, 11);
    Prng prng(13);
    for (int i = 0; i < 100; ++i) {
      const auto [from, to, plane] = draw_pair(topology, prng);
      const auto entropy = static_cast<std::uint32_t>(prng.next());
      const RouteKey key{.from = from, .to = to, .entropy = entropy, .plane = plane};
      for (const LinkId link : walk(topology, forwarder, key)) hash.fold(link);
    }
  }
  EXPECT_EQ(hash.value(), 6590909661585226809u);
}

TEST(Forwarder, ADifferentSaltSeedGivesDifferentPaths) {
  const Topology topology = must_make(two_tier({.hosts = 128, .hosts_per_t0 = 64, .t1_count = 64}));
  const Forwarder one(topology, Forwarding::kHashed, 1), two(topology, Forwarding::kHashed, 2);
  int same = 0;
  for (std::uint32_t i = 0; i < 6'400; ++i) {
    const RouteKey key{.from = 0, .to = 100, .entropy = i};
    same += walk(topology, one, key) == walk(topology, two, key);
  }
  EXPECT_GT(same, 50);  // by chance one in 64 paths is equal
  EXPECT_LT(same, 150);
}

TEST(Stev, FieldsHaveTheFewestBitsThatNumberTheUplinks) {
  EXPECT_EQ(stev_layout(must_make(single_switch(4, 1))), (StevLayout{0, 0}));
  EXPECT_EQ(stev_layout(must_make(two_tier({.hosts = 4, .hosts_per_t0 = 2, .t1_count = 1}))),
            (StevLayout{0, 0}));
  EXPECT_EQ(stev_layout(must_make(two_tier({.hosts = 4, .hosts_per_t0 = 2, .t1_count = 5}))),
            (StevLayout{3, 0}));
  EXPECT_EQ(stev_layout(must_make(fat_tree({.radix = 16}))), (StevLayout{3, 3}));
}

}  // namespace
}  // namespace weft::fabric
