// Departure times, marks, trims and drops equal those of PortQueue, and packets take the right
// paths. Tests of faults are in live_fabric_fault_test.cc. All tests use values: no clock, no
// socket.
#include "softswitch/live_fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "fabric/address.h"
#include "softswitch/test_live_fabric.h"
#include "wire/framing.h"

namespace weft::softswitch {
namespace {

using world::Dscp;
using world::Ecn;

// --- times -------------------------------------------------------------------------------------

TEST(LiveFabric, ArrivalTimesAreThoseOfStoreAndForward) {
  for (const std::size_t payload : {0u, 100u, 1000u, 4136u}) {
    Bench near(one_switch(2)), far(two_racks());
    PacketSpec a = Bench::spec(0, 1), b = Bench::spec(0, 3, 1);
    a.payload = b.payload = payload;
    near.send(at_us(10), a);
    far.send(at_us(10), b);
    const auto first = near.receive(at_us(10'000)), second = far.receive(at_us(10'000));
    ASSERT_EQ(first.size(), 1u);
    ASSERT_EQ(second.size(), 1u);
    EXPECT_EQ((first[0].at - at_us(10)).ps(), ((time_of(payload) + Duration::us(2)) * 2).ps());
    EXPECT_EQ((second[0].at - at_us(10)).ps(),
              ((time_of(payload) + Duration::us(2)) * 4 + Duration::us(3)).ps());
    EXPECT_EQ(second[0].host, 3u);
    EXPECT_EQ(second[0].plane, 1u);
    EXPECT_EQ(second[0].packet, make_packet(b)) << "not a byte is changed";
  }
}

TEST(LiveFabric, APacketIsDeliveredWhenItIsDueAndNotBefore) {
  Bench bench(one_switch(2));
  EXPECT_EQ(bench.fabric.next_deadline(), kNever);
  bench.send(at_us(10), Bench::spec(0, 1));
  const Time there = at_us(10) + (time_of(1000) + Duration::us(2)) * 2;
  EXPECT_TRUE(bench.receive(there - Duration::ps(1)).empty());
  EXPECT_EQ(bench.fabric.next_deadline(), there);
  EXPECT_EQ(bench.receive(there).size(), 1u);
  EXPECT_EQ(bench.fabric.next_deadline(), kNever);
  EXPECT_TRUE(bench.receive(at_us(1'000'000)).empty());
  EXPECT_EQ(bench.fabric.packets_in_fabric(), 0u);
}

// For random arrivals the fabric does the same as two PortQueues with the same random draws. It is
// polled often in one run, and only at the end in the other.
TEST(LiveFabric, ResultsEqualThoseOfPortQueue) {
  const LiveFabricConfig config = config_of(one_switch(3));
  switching::QueueParams params = config.last_hop_queue, nic;
  params.mtu_wire_size = nic.mtu_wire_size =
      static_cast<std::uint32_t>(wire::wire_size({.header_size = 36, .payload_size = config.mtu}));
  nic.control_bytes_max = 1u << 20;
  nic.ecn = false;

  struct Sent {
    Time at;
    PacketSpec spec;
    std::uint32_t wire = 0;
    Time at_switch{};
  };
  std::vector<Sent> sent;
  Prng prng(11);
  Time now = at_us(5);
  std::array<switching::PortQueue, 2> nics;
  for (auto& queue : nics) queue.set_rate(Rate::bps(200'000'000));
  for (int i = 0; i < 600; ++i) {
    now += Duration::ns(prng.below(30'000));
    Sent s{.at = now, .spec = Bench::spec(prng.below(2), 2)};
    s.spec.payload = 200 + prng.below(800);
    s.spec.fill = static_cast<std::uint8_t>(i);
    const std::uint32_t kind = prng.below(10);
    if (kind == 0) s.spec.dscp = Dscp::kControl;
    if (kind > 3) s.spec.dscp = Dscp::kNoTrim;
    if (kind == 2) s.spec.ecn = Ecn::kNotEct;
    s.wire = static_cast<std::uint32_t>(s.spec.payload + 40 + 8 + 14 + 4 + 20);
    Prng unused(1);
    auto& queue = nics[fabric::port_of(s.spec.source)->host];
    const auto left =
        queue.admit(now, {.wire_size = s.wire, .control = s.spec.dscp == Dscp::kControl}, nic,
                    1u << 20, unused);
    ASSERT_NE(left.fate, switching::Fate::kDropped);
    s.at_switch = left.leaves_at + Duration::us(2);
    sent.push_back(s);
  }

  std::vector<Sent> by_arrival = sent;
  std::stable_sort(by_arrival.begin(), by_arrival.end(),
                   [](const Sent& a, const Sent& b) { return a.at_switch < b.at_switch; });
  struct Expected {
    Time at;
    std::uint8_t fill;
    Dscp dscp;
    bool marked;
  };
  std::vector<Expected> expected;
  std::uint64_t marks = 0, trims = 0, drops = 0;
  switching::PortQueue port;
  port.set_rate(Rate::bps(200'000'000));
  Prng draws = Prng(config.seed).fork("ecn");
  for (const Sent& s : by_arrival) {
    const auto fate = port.admit(s.at_switch,
                                 {.wire_size = s.wire,
                                  .trimmed_wire_size = 40 + 44 + 14 + 4 + 20,
                                  .control = s.spec.dscp == Dscp::kControl,
                                  .trimmable = s.spec.dscp == Dscp::kTrimmable,
                                  .ecn_capable = s.spec.ecn == Ecn::kEct0},
                                 params, params.data_bytes_max, draws);
    drops += fate.fate == switching::Fate::kDropped;
    if (fate.fate == switching::Fate::kDropped) continue;
    const bool trimmed = fate.fate == switching::Fate::kTrimmed;
    trims += trimmed;
    marks += fate.marked;
    expected.push_back({fate.leaves_at + Duration::us(2), s.spec.fill,
                        trimmed ? Dscp::kTrimmedLastHop : s.spec.dscp, fate.marked});
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](const Expected& a, const Expected& b) { return a.at < b.at; });
  ASSERT_GT(marks, 20u);
  ASSERT_GT(trims, 20u);
  ASSERT_GT(drops, 0u);

  for (const bool often : {true, false}) {
    Bench bench(config);
    std::vector<Got> got;
    for (const Sent& s : sent) {
      bench.send(s.at, s.spec);
      if (!often) continue;
      for (Got& g : bench.receive(s.at)) got.push_back(std::move(g));
    }
    for (Got& g : bench.receive(at_us(1'000'000))) got.push_back(std::move(g));
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto facts = read_facts(got[i].packet);
      ASSERT_TRUE(facts && facts->udp);
      EXPECT_EQ(got[i].at.ps(), expected[i].at.ps()) << i;
      EXPECT_EQ(base::load8(got[i].packet, 50), expected[i].fill) << i;
      EXPECT_EQ(facts->dscp, expected[i].dscp) << i;
      EXPECT_EQ(facts->ecn == Ecn::kCe, expected[i].marked) << i;
      EXPECT_TRUE(checksum_holds(got[i].packet)) << i;
    }
    EXPECT_EQ(bench.total(&LinkCounters::ecn_marks), marks);
    EXPECT_EQ(bench.total(&LinkCounters::trims), trims);
    EXPECT_EQ(bench.total(&LinkCounters::drops_queue), drops);
    EXPECT_EQ(bench.fabric.packets_in_fabric(), 0u);
  }
}

// --- paths -------------------------------------------------------------------------------------

TEST(LiveFabric, APacketWithUsidsTakesItsPathAndArrivesWithTheHostsUsid) {
  for (std::uint32_t path = 0; path < 2; ++path) {
    Bench bench(two_racks());
    const fabric::Topology& topology = bench.fabric.topology();
    PacketSpec spec = Bench::spec(1, 2, 1);
    spec.destination = fabric::address_of(fabric::usids_for(topology, 1, 1, 2, path));
    bench.send(at_us(1), spec);
    const auto got = bench.receive(at_us(10'000));
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].host, 2u);
    EXPECT_EQ(got[0].plane, 1u);
    fabric::UsidList own;
    own.usid[0] = fabric::usid_of(topology, {1, fabric::Tier::kHost, 2});
    EXPECT_EQ(read_facts(got[0].packet)->destination, fabric::address_of(own));
    EXPECT_TRUE(checksum_holds(got[0].packet));
    EXPECT_EQ(bench.fabric.counters(topology.t0_up(1, 0, path)).packets, 1u);
    EXPECT_EQ(bench.fabric.counters(topology.t0_up(1, 0, 1 - path)).packets, 0u);
  }
}

TEST(LiveFabric, ATrimmedPacketWithUsidsHasAValidChecksum) {
  LiveFabricConfig config = config_of(two_racks());
  config.fabric_queue.data_bytes_max = config.last_hop_queue.data_bytes_max = 3000;
  Bench bench(config);
  // Both hosts of a rack send over one uplink, whose queue fills up.
  for (int i = 0; i < 20; ++i) {
    for (const fabric::HostIndex from : {0u, 1u}) {
      PacketSpec spec = Bench::spec(from, 2);
      spec.destination =
          fabric::address_of(fabric::usids_for(bench.fabric.topology(), 0, from, 2, 0));
      bench.send(at_us(1), spec);
    }
  }
  const auto got = bench.receive(at_us(100'000));
  EXPECT_EQ(got.size(), 40u);
  std::size_t trimmed = 0;
  for (const Got& g : got) {
    EXPECT_TRUE(checksum_holds(g.packet));
    trimmed += read_facts(g.packet)->dscp == Dscp::kTrimmed;
  }
  EXPECT_GT(trimmed, 0u);
  EXPECT_EQ(trimmed, bench.fabric.counters(bench.fabric.topology().t0_up(0, 0, 0)).trims);
}

TEST(LiveFabric, SourcePortsSpreadOverThePaths) {
  Bench bench(two_racks());
  const fabric::Topology& topology = bench.fabric.topology();
  for (std::uint16_t port = 0; port < 64; ++port) {
    PacketSpec spec = Bench::spec(0, 2);
    spec.source_port = static_cast<std::uint16_t>(15'104 + port);
    bench.send(at_us(port * 100), spec);
  }
  EXPECT_EQ(bench.receive(at_us(100'000)).size(), 64u);
  for (std::uint32_t j = 0; j < 2; ++j)
    EXPECT_GT(bench.fabric.counters(topology.t0_up(0, 0, j)).packets, 16u);
}

TEST(LiveFabric, PacketsToAddressesOutsideTheFabricAreIgnored) {
  Bench bench(one_switch(2, 2));
  PacketSpec other_plane = Bench::spec(0, 1);
  other_plane.destination = fabric::address_of({.host = 1, .plane = 1});
  PacketSpec nobody = Bench::spec(0, 2);
  PacketSpec multicast = Bench::spec(0, 1);
  multicast.destination = {0xff02'0000'0000'0000, 1};
  for (const PacketSpec& spec : {other_plane, nobody, multicast}) bench.send(at_us(1), spec);
  bench.fabric.on_packet(at_us(1), 0, 0, {});
  EXPECT_EQ(bench.fabric.counters().ignored, 4u);
  PacketSpec lost_way = Bench::spec(0, 1);
  fabric::UsidList wrong;
  wrong.usid[0] = fabric::make_usid(fabric::UsidRole::kT1, 0, 1);
  lost_way.destination = fabric::address_of(wrong);
  bench.send(at_us(1), lost_way);
  EXPECT_EQ(bench.fabric.counters().drops_route, 1u);
  EXPECT_TRUE(bench.receive(at_us(10'000)).empty());
  EXPECT_EQ(bench.fabric.packets_in_fabric(), 0u);
}

// --- bounds ------------------------------------------------------------------------------------

TEST(LiveFabric, PacketMemoryAndTheHostsQueueAreBounded) {
  LiveFabricConfig config = config_of(one_switch(2));
  config.packets_max = 10;
  Bench small(config);
  for (int i = 0; i < 25; ++i) small.send(at_us(1), Bench::spec(0, 1));
  EXPECT_EQ(small.fabric.counters().drops_memory, 15u);
  EXPECT_EQ(small.receive(at_us(100'000)).size(), 10u);

  config.packets_max = 1024;
  config.nic_queue_bytes = 10 * 1086;
  Bench queue(config);
  for (int i = 0; i < 25; ++i) queue.send(at_us(1), Bench::spec(0, 1));
  EXPECT_EQ(queue.receive(at_us(100'000)).size(), 10u);
  EXPECT_EQ(queue.fabric.counters(queue.fabric.topology().host_up(0, 0)).drops_queue, 15u);
}

}  // namespace
}  // namespace weft::softswitch
