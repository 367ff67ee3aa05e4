#include "lab/lab_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "fabric/address.h"
#include "fabric/forward.h"
#include "fabric/sample_topologies.h"

namespace weft::lab {
namespace {

using fabric::Forwarder;
using fabric::Forwarding;
using fabric::LinkId;
using fabric::Topology;

LabSpec spec_of(const fabric::TopologySpec& topology) {
  LabSpec spec;
  spec.topology = topology;
  return spec;
}

// Plans of every shape of fabric that fits into a lab, in both layouts.
std::vector<LabPlan> sample_plans() {
  std::vector<LabPlan> plans;
  for (const Topology& topology : fabric::sample_topologies()) {
    auto plan = LabPlan::make(spec_of(topology.spec()));
    if (plan) plans.push_back(std::move(*plan));
  }
  plans.push_back(
      LabPlan::make(
          spec_of(fabric::with_rails(
              fabric::two_tier({.hosts = 8, .planes = 2, .hosts_per_t0 = 2, .t1_count = 3}), 4)))
          .value());
  plans.push_back(LabPlan::make(spec_of({.shape = fabric::Shape::kThreeTier,
                                         .hosts = 12,
                                         .planes = 2,
                                         .hosts_per_t0 = 2,
                                         .t0_per_pod = 3,
                                         .t1_per_pod = 2,
                                         .t2_per_t1 = 3,
                                         .host_rate = Rate::gbps(1),
                                         .fabric_rate = Rate::gbps(1)}))
                      .value());
  return plans;
}

bool matches(const LabRoute& route, const Ipv6& ip) {
  const auto same_top = [](std::uint64_t a, std::uint64_t b, std::uint32_t bits) {
    return bits == 0 || (a ^ b) >> (64 - bits) == 0;
  };
  if (route.prefix_bits <= 64) return same_top(route.prefix.high, ip.high, route.prefix_bits);
  return route.prefix.high == ip.high && same_top(route.prefix.low, ip.low, route.prefix_bits - 64);
}

// The route with the longest matching prefix, as the kernel chooses it.
const LabRoute* lookup(const LabNode& node, const Ipv6& ip) {
  const LabRoute* best = nullptr;
  for (const LabRoute& route : node.routes) {
    if (matches(route, ip) && (best == nullptr || route.prefix_bits > best->prefix_bits))
      best = &route;
  }
  return best;
}

bool is_local(const LabNode& node, const Ipv6& ip) {
  for (const LabAddress& address : node.addresses) {
    if (address.ip == ip) return true;
  }
  return false;
}

// Follows a packet from a host until a node has its destination address, and lists the links.
// `choice` selects among several next hops.
struct Walk {
  std::vector<LinkId> links;
  const LabNode* taken_by = nullptr;  // null: there is no route
};
Walk follow(const LabPlan& plan, const LabNode& from, Ipv6 to, std::size_t choice) {
  Walk walk;
  const LabNode* at = &from;
  for (int hop = 0; hop < 16; ++hop) {
    if (is_local(*at, to)) {
      walk.taken_by = at;
      return walk;
    }
    const LabRoute* route = lookup(*at, to);
    if (route != nullptr && route->via.empty()) {
      to = fabric::shift_usid(to);
      route = lookup(*at, to);
    }
    if (route == nullptr || route->via.empty()) return walk;
    const LinkId link = route->via[choice % route->via.size()];
    EXPECT_EQ(&plan.sender(link), at);
    walk.links.push_back(link);
    at = &plan.receiver(link);
  }
  return walk;
}

TEST(LabPlan, PacketsWithUsidsTakeThePathThatTheForwarderComputes) {
  std::size_t walked = 0;
  for (const LabPlan& plan : sample_plans()) {
    const Topology& topology = plan.topology();
    const Forwarder forwarder(topology, Forwarding::kSrv6, 0);
    for (std::uint32_t plane = 0; plane < topology.plane_count(); ++plane) {
      for (std::uint32_t from = 0; from < topology.host_count(); ++from) {
        for (std::uint32_t to = 0; to < topology.host_count(); ++to) {
          if (from == to) continue;
          for (std::uint32_t path = 0; path < topology.path_count(from, to); ++path) {
            fabric::RouteKey key;
            key.usids = fabric::usids_for(topology, plane, from, to, path);
            const Walk walk = follow(plan, plan.nodes()[from], fabric::address_of(key.usids), 0);
            std::vector<LinkId> expected{topology.host_up(plane, from)};
            while (!topology.is_last_hop(expected.back()))
              expected.push_back(forwarder.next(expected.back(), key));
            ASSERT_EQ(walk.links, expected)
                << "plane " << plane << ", " << from << " to " << to << ", path " << path;
            ASSERT_EQ(walk.taken_by, &plan.nodes()[to]);
            ++walked;
          }
        }
      }
    }
  }
  EXPECT_GT(walked, 10'000u);
}

// ICMP errors return on these routes, whichever next hop the kernel's hash selects.
TEST(LabPlan, EverySwitchReachesTheOwnAddressOfEveryHost) {
  for (const LabPlan& plan : sample_plans()) {
    for (const LabNode& node : plan.nodes()) {
      if (node.is_host()) continue;
      for (std::uint32_t host = 0; host < plan.topology().host_count(); ++host) {
        for (std::size_t choice = 0; choice < 4; ++choice) {
          const Walk walk = follow(
              plan, node, fabric::address_of({.host = host, .plane = node.id.plane}), choice);
          ASSERT_EQ(walk.taken_by, &plan.nodes()[host]) << node.netns << " to host " << host;
          ASSERT_LE(walk.links.size(), 5u);
        }
      }
    }
  }
}

TEST(LabPlan, AWrongUsidHasNoRoute) {
  const LabPlan plan =
      LabPlan::make(spec_of(fabric::two_tier({.hosts = 4, .hosts_per_t0 = 2, .t1_count = 2})))
          .value();
  fabric::UsidList usids = fabric::usids_for(plan.topology(), 0, 0, 2, 1);
  usids.usid[1] = fabric::make_usid(fabric::UsidRole::kT1, 0, 7);
  EXPECT_EQ(follow(plan, plan.nodes()[0], fabric::address_of(usids), 0).taken_by, nullptr);
  usids.usid[0] = fabric::make_usid(fabric::UsidRole::kT0, 0, 2);  // the uSID of another T0
  EXPECT_EQ(follow(plan, plan.nodes()[0], fabric::address_of(usids), 0).links.size(), 0u);
}

TEST(LabPlan, NamesAreUniqueAndShortEnough) {
  for (const LabPlan& plan : sample_plans()) {
    std::set<std::string> namespaces;
    for (const LabNode& node : plan.nodes()) {
      EXPECT_TRUE(namespaces.insert(node.netns).second) << node.netns;
      EXPECT_EQ(node.netns.rfind("weft.lab.", 0), 0u) << node.netns;
      EXPECT_EQ(&plan.node(node.id), &node);
      std::set<std::string> interfaces{"lo", "usid0", "usid1"};
      for (const LabInterface& interface : node.interfaces) {
        EXPECT_TRUE(interfaces.insert(interface.name).second) << interface.name;
        EXPECT_LT(interface.name.size(), 16u);  // IFNAMSIZ
        EXPECT_EQ(plan.interface(interface.out), interface.name);
      }
    }
  }
  const LabPlan plan = LabPlan::make(spec_of(fabric::single_switch(2, 3))).value();
  EXPECT_EQ(plan.nodes()[1].netns, "weft.lab.h1");
  EXPECT_EQ(plan.nodes()[1].interfaces[2].name, "p3");
  EXPECT_EQ(plan.nodes()[2].netns, "weft.lab.p0.t0.0");
  EXPECT_EQ(plan.nodes()[2].interfaces[1].name, "h1");
}

TEST(LabPlan, InvalidSpecsAreRefused) {
  const auto refuses = [](const LabSpec& spec, const std::string& word) {
    const auto plan = LabPlan::make(spec);
    ASSERT_FALSE(plan);
    EXPECT_NE(plan.error().message.find(word), std::string::npos) << plan.error().message;
  };
  refuses(spec_of(fabric::single_switch(65, 1)), "64");
  refuses(spec_of(fabric::two_tier({.hosts = 64, .planes = 8, .hosts_per_t0 = 4, .t1_count = 16})),
          "256");
  LabSpec spec = spec_of(fabric::single_switch(2, 1));
  for (const char* name : {"", "-a", "a.b", "a/b", "a b", "0123456789012345678901234"}) {
    spec.name = name;
    refuses(spec, "name");
  }
  spec.name = "ok";
  spec.mtu = 1000;
  refuses(spec, "MTU");
}

TEST(LabPlan, OnlySlowLinksHaveARateLimit) {
  fabric::TopologySpec topology = fabric::two_tier({.hosts = 4, .hosts_per_t0 = 2, .t1_count = 2});
  topology.host_rate = Rate::gbps(10);
  const LabPlan plan = LabPlan::make(spec_of(topology)).value();
  EXPECT_EQ(plan.rate(plan.topology().host_up(0, 1)), Rate::gbps(10));
  EXPECT_EQ(plan.rate(plan.topology().t0_up(0, 0, 1)), std::nullopt);
}

}  // namespace
}  // namespace weft::lab
