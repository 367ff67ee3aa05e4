#include "scenario/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "scenario/framing.h"
#include "scenario/testing.h"

namespace weft::scenario {
namespace {

struct Made {
  Scenario scenario;
  fabric::Topology topology;
  Plan plan;
};

Made made(std::string_view workload, std::uint64_t seed = 1) {
  Scenario scenario = small_scenario(workload);
  fabric::Topology topology = topology_of(scenario);
  Plan plan = make_plan(scenario, topology, Prng(seed));
  return {std::move(scenario), topology, std::move(plan)};
}

// Checks that must succeed for every plan.
void expect_sound(const Plan& plan) {
  ASSERT_EQ(plan.ends.size(), 2 * plan.connections.size());
  std::vector<int> seen(plan.connections.size(), 0);
  for (HostIndex host = 0; host < plan.host_count(); ++host) {
    for (const End& end : plan.ends_of(host)) {
      ++seen[end.connection];
      const Connection& c = plan.connections[end.connection];
      EXPECT_LT(c.a, c.b);
      EXPECT_TRUE(c.a == host || c.b == host);
    }
    for (const Op& op : plan.ops_of(host)) {
      for (std::uint32_t k = 0; k < plan.qps_per_peer; ++k) {
        const End& end = plan.ends_of(host)[op.first_end + k];
        EXPECT_EQ(plan.peer_of(host, end), op.peer);
        EXPECT_TRUE(end.sends);
      }
    }
  }
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 2; }));
  for (FlowIndex flow = 0; flow < plan.ops.size(); ++flow) {
    const HostIndex host = plan.host_of(flow);
    EXPECT_GE(flow, plan.ops_from[host]);
    EXPECT_LT(flow, plan.ops_from[host + 1]);
  }
}

TEST(Workload, PermutationSendsAndReceivesOnceAtEveryHost) {
  const Made m = made("[workload]\nkind = \"permutation\"\nbytes = \"1MiB\"\n");
  expect_sound(m.plan);
  std::set<HostIndex> to;
  for (HostIndex host = 0; host < 16; ++host) {
    ASSERT_EQ(m.plan.ops_of(host).size(), 1u);
    EXPECT_NE(m.plan.ops_of(host)[0].peer, host);
    to.insert(m.plan.ops_of(host)[0].peer);
  }
  EXPECT_EQ(to.size(), 16u);
  const auto peers = [](const Plan& plan) {
    std::vector<HostIndex> list;
    for (const Op& op : plan.ops) list.push_back(op.peer);
    return list;
  };
  const char* same = "[workload]\nkind = \"permutation\"\nbytes = \"1MiB\"\n";
  EXPECT_EQ(peers(m.plan), peers(made(same, 1).plan));
  EXPECT_NE(peers(m.plan), peers(made(same, 2).plan));
}

TEST(Workload, DirectionsOfAPairShareAConnectionAndCrossUsesTwoT0s) {
  const Made near =
      made("[workload]\nkind = \"pairs\"\nhosts = 4\nbytes = 1\nbidirectional = true\n");
  expect_sound(near.plan);
  EXPECT_EQ(near.plan.connections.size(), 2u) << "both directions share a QP pair";
  EXPECT_EQ(near.plan.ops_of(1)[0].peer, 0u);
  const Made far = made("[workload]\nkind = \"pairs\"\nhosts = 4\nbytes = 1\ncross = true\n");
  EXPECT_EQ(far.plan.ops_of(1)[0].peer, 9u);
  EXPECT_NE(far.topology.t0_of(1), far.topology.t0_of(9));
}

TEST(Workload, IncastMayHaveAVictimFlow) {
  const Made m =
      made("[workload]\nkind = \"incast\"\nsenders = 7\nvictim = true\nbytes = \"1MiB\"\n");
  expect_sound(m.plan);
  ASSERT_EQ(m.plan.ops.size(), 8u);
  for (HostIndex host = 4; host < 11; ++host) EXPECT_EQ(m.plan.ops_of(host)[0].peer, 0u);
  EXPECT_EQ(m.plan.ops_of(11)[0].peer, 1u);
  EXPECT_TRUE(m.plan.ops_of(11)[0].victim);
  // Seven flows into the two 100 Gb/s planes of one host; the victim is not counted.
  const Framing framing(m.scenario);
  const std::uint64_t wire = 7 * framing.message(1 << 20);
  EXPECT_EQ(m.plan.ideal - m.plan.ideal_rtt, Rate::gbps(200).time_for(wire));
  EXPECT_EQ(made("[workload]\nkind = \"incast\"\nbytes = 1\n").plan.ops.size(), 15u)
      << "all others";
}

TEST(Workload, AllToAllReachesEveryPeerInStaggeredOrder) {
  const Made m = made("[workload]\nkind = \"all-to-all\"\nbytes = 1000\ngroup = 8\nparallel = 3\n");
  expect_sound(m.plan);
  EXPECT_EQ(m.plan.connections.size(), 2u * 8 * 7 / 2);
  EXPECT_EQ(m.plan.active_max, 3u);
  for (HostIndex host = 0; host < 16; ++host) {
    std::set<HostIndex> peers;
    for (const Op& op : m.plan.ops_of(host)) peers.insert(op.peer);
    EXPECT_EQ(peers.size(), 7u);
    EXPECT_EQ(m.plan.ops_of(host)[0].peer, host / 8 * 8 + (host % 8 + 1) % 8);
  }
}

// Runs a plan without a network: each operation completes as soon as it may start. Returns how many
// operations completed.
std::size_t run_dependencies(const Plan& plan) {
  std::vector<std::vector<std::uint32_t>> received(plan.host_count());
  for (HostIndex host = 0; host < plan.host_count(); ++host) {
    received[host].resize(plan.ends_of(host).size(), 0);
  }
  std::vector<std::size_t> next(plan.host_count(), 0);
  std::size_t done = 0;
  for (bool any = true; any;) {
    any = false;
    for (HostIndex host = 0; host < plan.host_count(); ++host) {
      const auto ops = plan.ops_of(host);
      if (next[host] == ops.size()) continue;
      const Op& op = ops[next[host]];
      bool ready = true;
      for (const std::uint32_t end : op.after_end) {
        for (std::uint32_t k = 0; end != kNoEnd && k < plan.signalled_qps; ++k) {
          ready = ready && received[host][end + k] >= op.after_receives;
        }
      }
      if (!ready) continue;
      ++next[host], ++done, any = true;
      for (std::uint64_t k = 0; k < message_count(plan, op); ++k) {
        if (!is_signalled(plan, op, k)) continue;
        const auto ends = plan.ends_of(host);
        const std::uint32_t connection = ends[op.first_end + k % plan.qps_per_peer].connection;
        const auto theirs = plan.ends_of(op.peer);
        for (std::uint32_t e = 0; e < theirs.size(); ++e) {
          if (theirs[e].connection == connection) ++received[op.peer][e];
        }
      }
    }
  }
  for (HostIndex host = 0; host < plan.host_count(); ++host) {
    for (std::uint32_t e = 0; e < received[host].size(); ++e) {
      EXPECT_EQ(received[host][e], plan.ends_of(host)[e].receives) << "host " << host;
    }
  }
  return done;
}

TEST(Workload, EachRingStepWaitsForThePreviousStep) {
  for (const char* keys : {"", "qps_per_peer = 2\nmessage = 100\n", "group = 2\n", "group = 4\n"}) {
    const Made m =
        made("[workload]\nkind = \"ring-all-reduce\"\nbytes = 16000\n" + std::string(keys));
    expect_sound(m.plan);
    const std::uint32_t group = m.scenario.workload.group == 0 ? 16 : m.scenario.workload.group;
    EXPECT_EQ(m.plan.ops.size(), 16u * 2 * (group - 1));
    EXPECT_EQ(run_dependencies(m.plan), m.plan.ops.size()) << keys;
    EXPECT_EQ(m.plan.ops[0].bytes, 16000 / group);
    EXPECT_TRUE(m.plan.ideal_of_whole);
  }
}

TEST(Workload, TreeAllReduceGoesUpAndThenDown) {
  for (const char* keys : {"", "group = 2\n", "group = 8\n"}) {
    const Made m =
        made("[workload]\nkind = \"tree-all-reduce\"\nbytes = 16000\n" + std::string(keys));
    expect_sound(m.plan);
    const std::uint32_t group = m.scenario.workload.group == 0 ? 16 : m.scenario.workload.group;
    EXPECT_EQ(m.plan.ops.size(), 16u / group * 2 * (group - 1)) << "up and down every edge";
    EXPECT_EQ(run_dependencies(m.plan), m.plan.ops.size()) << keys;
  }
}

TEST(Workload, IdealOfARingAllReduceIsTheSumOfItsSteps) {
  const Made m = made("[workload]\nkind = \"ring-all-reduce\"\nbytes = \"4MiB\"\n");
  const Framing framing(m.scenario);
  const Duration chunk = Rate::gbps(200).time_for(framing.message(4 << 20 >> 4));
  const auto one_way = [&](HostIndex from, HostIndex to) {
    return m.topology.idle_rtt(from, to, framing.packet_full(), 0) -
           m.topology.idle_rtt(from, to, 0, 0) / 2;
  };
  // Sixteen hosts under four T0s: in one round, four hops lead through a T1 and twelve do not. The
  // slowest 30 of the 32 hops of two rounds leave out two of the short hops.
  const Duration near = one_way(0, 1), far = one_way(3, 4);
  const Duration rtt = m.topology.idle_rtt(0, 15, framing.packet_full(), framing.sack());
  EXPECT_EQ(m.plan.ideal, chunk * 30 + near * 22 + far * 8 + (rtt - rtt / 2));
}

TEST(Workload, IdealOfATreeAllReduceCountsBothDirections) {
  const Made two = made("[workload]\nkind = \"tree-all-reduce\"\nbytes = \"1MiB\"\ngroup = 2\n");
  const Made eight = made("[workload]\nkind = \"tree-all-reduce\"\nbytes = \"1MiB\"\ngroup = 8\n");
  const Framing framing(two.scenario);
  const Duration vector = Rate::gbps(200).time_for(framing.message(1 << 20));
  EXPECT_EQ(two.plan.ideal - two.plan.ideal_rtt, vector * 2);
  // Up: rank 1 receives a second vector from rank 3, which waited for rank 7. So rank 1 has its sum
  // after 2 vectors, as has rank 2, and the root after two more. Down: three levels; each parent
  // sends first to the child on the critical path.
  EXPECT_EQ(eight.plan.ideal - eight.plan.ideal_rtt, vector * (4 + 3));
}

TEST(Workload, RepeatedFlowsEndAfterTheirTime) {
  const Made m =
      made("[workload]\nkind = \"pairs\"\nhosts = 2\nmessage = 4096\nrepeat_for = \"1ms\"\n");
  const Framing framing(m.scenario);
  EXPECT_EQ(m.plan.ideal - m.plan.ideal_rtt,
            Duration::ms(1) + Rate::gbps(200).time_for(framing.message(4096)));
  EXPECT_NEAR(static_cast<double>(m.plan.goodput_limit_bps), 200e9 * 4096 / framing.packet_full(),
              1e6);
}

TEST(Workload, IdealUsesTheNarrowestCapacity) {
  // Four hosts under one T0 send to four under another T0. Half of the uplinks are usable, so the
  // T0 is the narrowest capacity.
  std::string flows = "[workload]\nkind = \"flows\"\nbytes = \"1MiB\"\n";
  for (int i = 0; i < 4; ++i) {
    flows +=
        "[[workload.flow]]\nfrom = " + std::to_string(i) + "\nto = " + std::to_string(i + 4) + "\n";
  }
  Scenario scenario = small_scenario(flows);
  scenario.topology.t1_count = 2;
  const fabric::Topology topology = topology_of(scenario);
  const Plan plan = make_plan(scenario, topology, Prng(1));
  const Framing framing(scenario);
  EXPECT_EQ(plan.ideal - plan.ideal_rtt, Rate::gbps(400).time_for(4 * framing.message(1 << 20)));
}

TEST(Workload, WireBytesMatchTheMrcPaperAndHtsim) {
  const Scenario srv6 = small_scenario("[workload]\nkind = \"permutation\"\nbytes = 1\n");
  EXPECT_EQ(Framing(srv6).packet_full(), 4096u + 126 + 40);
  const Scenario hashed = small_scenario(
      "[workload]\nkind = \"permutation\"\nbytes = 1\n[switch]\nforwarding = \"hashed\"\n"
      "[transport]\nmtu = 4024\n");
  EXPECT_EQ(Framing(hashed).packet_full(), 4150u) << "htsim's packet";
  EXPECT_EQ(Framing(hashed).message(0), Framing(hashed).packet(0));
  EXPECT_EQ(Framing(hashed).message(2 * 4024 + 1), 2u * 4150 + Framing(hashed).packet(1));
}

TEST(Workload, MessagesCoverTheFlowExactlyOnce) {
  const Made m = made(
      "[workload]\nkind = \"permutation\"\nbytes = 1000\nmessage = 300\nqps_per_peer = 3\n"
      "immediate = true\n");
  const Op& op = m.plan.ops[0];
  ASSERT_EQ(message_count(m.plan, op), 4u);
  std::uint64_t sum = 0;
  for (std::uint64_t k = 0; k < 4; ++k) sum += message_bytes(m.plan, op, k);
  EXPECT_EQ(sum, 1000u);
  EXPECT_EQ(message_bytes(m.plan, op, 3), 100u);
  EXPECT_EQ(m.plan.connections.size(), 16u * 3);
  EXPECT_EQ(run_dependencies(m.plan), 16u);
}

TEST(Workload, ListedFlowsShareQpsByNumber) {
  const Made m = made(
      "[workload]\nkind = \"flows\"\nbytes = 5\n"
      "[[workload.flow]]\nfrom = 0\nto = 1\nstart = \"9us\"\n"
      "[[workload.flow]]\nfrom = 0\nto = 1\n"
      "[[workload.flow]]\nfrom = 1\nto = 0\nqp = 1\nbytes = 7\nbad_rkey = true\n");
  expect_sound(m.plan);
  EXPECT_EQ(m.plan.connections.size(), 2u);
  ASSERT_EQ(m.plan.ops_of(0).size(), 2u);
  EXPECT_EQ(m.plan.ops_of(0)[0].listed, 1u) << "by start";
  EXPECT_EQ(m.plan.ops_of(0)[0].first_end, m.plan.ops_of(0)[1].first_end);
  EXPECT_NE(m.plan.ops_of(1)[0].first_end, 0u);
  EXPECT_EQ(m.plan.ops_of(1)[0].bytes, 7u);
  EXPECT_TRUE(m.plan.ops_of(1)[0].bad_rkey);
}

TEST(Workload, PlanOfOneMillionFlowsFitsItsMemoryBound) {
  Scenario scenario = small_scenario("[workload]\nkind = \"all-to-all\"\nbytes = 16000\n");
  scenario.topology.hosts = 1024;
  scenario.topology.hosts_per_t0 = 32;
  const Plan plan = make_plan(scenario, topology_of(scenario), Prng(1));
  EXPECT_EQ(plan.ops.size(), 1'047'552u);
  EXPECT_LE(plan.ops.size() * sizeof(Op) + plan.ends.size() * sizeof(End) +
                plan.connections.size() * sizeof(Connection),
            72u << 20);
}

}  // namespace
}  // namespace weft::scenario
