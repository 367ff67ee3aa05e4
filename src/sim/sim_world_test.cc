// Times on links and in queues, exact to the picosecond; marks, trims and drops.
// sim_world_fault_test.cc tests faults.
#include "sim/sim_world.h"

#include <gtest/gtest.h>

#include "base/test_counters.h"
#include "sim/test_node.h"

namespace weft::sim {
namespace {

constexpr Time kStart = us(10);

// --- store and forward ---

struct Route {
  fabric::TopologySpec spec{};
  fabric::HostIndex to = 0;
  int links = 0;
};

TEST(SimWorld, StoreAndForwardTimeIsExact) {
  for (const Route& route :
       {Route{one_switch(2), 1, 2}, Route{two_racks(4), 2, 4}, Route{fat_tree(), 15, 6}}) {
    for (const std::uint32_t payload : {0u, 1u, 64u, 4096u}) {
      fabric::TopologySpec spec = route.spec;
      spec.switch_delay = Duration::ns(300);
      Bench bench(spec);
      bench.send(0, route.to, {.at = kStart, .size = payload});
      bench.world().step(us(100));
      ASSERT_EQ(bench.node(route.to).received.size(), 1u) << route.links << " links";
      const Duration took = bench.node(route.to).received[0].at - kStart;
      const Duration expected = (Bench::packet_time(payload) + Duration::ns(500)) * route.links +
                                Duration::ns(300) * (route.links - 1);
      EXPECT_EQ(took.ps(), expected.ps()) << route.links << " links, " << payload << " bytes";
      EXPECT_EQ(bench.world().counters().packet_hops, static_cast<std::uint64_t>(route.links));
    }
  }
}

TEST(SimWorld, PacketsOfOneSenderArriveAtLineRate) {
  Bench bench(two_racks(4));
  for (std::uint8_t i = 0; i < 100; ++i) bench.send(0, 2, {.at = kStart, .mark = i});
  bench.world().step(us(1000));
  const auto& received = bench.node(2).received;
  ASSERT_EQ(received.size(), 100u);
  const Time first = kStart + (Bench::packet_time() + Duration::ns(500)) * 4;
  for (std::int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(received[static_cast<std::size_t>(i)].at.ps(),
              (first + Bench::packet_time() * i).ps());
    EXPECT_EQ(received[static_cast<std::size_t>(i)].mark, i);
  }
}

TEST(SimWorld, PacketsOnEveryPlaneArrive) {
  Bench bench(one_switch(2, 8));
  for (std::uint8_t plane = 0; plane < 8; ++plane)
    bench.send(0, 1, {.at = kStart, .port = plane, .mark = plane});
  bench.world().step(us(100));
  ASSERT_EQ(bench.node(1).received.size(), 8u);
  for (const auto& r : bench.node(1).received) {
    EXPECT_EQ(r.at, bench.node(1).received[0].at);
    EXPECT_EQ(r.datagram.port, r.mark);
    EXPECT_EQ(r.datagram.peer.ip(), fabric::address_of({.host = 0, .plane = r.mark}));
  }
}

TEST(SimWorld, AShortPacketDoesNotOvertakeALongOne) {
  Bench bench(two_racks(4));
  bench.send(0, 2, {.at = kStart, .size = 4096, .mark = 1});
  bench.send(0, 2, {.at = kStart, .size = 64, .mark = 2});
  bench.world().step(us(100));
  const auto& received = bench.node(2).received;
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].mark, 1);
  EXPECT_EQ((received[1].at - received[0].at).ps(), Bench::packet_time(64).ps());
}

TEST(SimWorld, StepStopsAtItsLimit) {
  Bench bench(one_switch(2));
  bench.send(0, 1, {.at = kStart});
  EXPECT_TRUE(bench.world().step(us(10)));
  EXPECT_EQ(bench.world().now(), us(10));
  EXPECT_TRUE(bench.node(1).received.empty());
  EXPECT_FALSE(bench.world().step(us(100)));
  EXPECT_EQ(bench.node(1).received.size(), 1u);
}

// --- queues ---

switching::QueueParams shallow(std::uint64_t packets) {
  switching::QueueParams queue = Bench::deep_queue();
  queue.data_bytes_max = packets * Bench::packet_size();
  return queue;
}

// `senders` hosts send one packet each to the last host, a nanosecond apart.
std::unique_ptr<Bench> incast(const switching::QueueParams& queue, std::uint32_t senders,
                              const ScriptedNode::Send& what) {
  auto bench = std::make_unique<Bench>(Bench::config(one_switch(senders + 1), queue));
  for (std::uint32_t host = 0; host < senders; ++host) {
    ScriptedNode::Send one = what;
    one.at += Duration::ns(host);
    bench->send(host, senders, one);
  }
  bench->world().step(us(1000));
  return bench;
}

TEST(SimWorld, PacketsBehindALongQueueAreMarked) {
  switching::QueueParams queue = Bench::deep_queue();
  queue.ecn_bytes_min = Bench::packet_size() * 3 / 2;
  queue.ecn_bytes_max = queue.ecn_bytes_min + 1;
  const auto bench = incast(queue, 5, {.at = kStart});
  const auto& received = bench->node(5).received;
  ASSERT_EQ(received.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(received[i].datagram.ecn, i < 2 ? world::Ecn::kEct0 : world::Ecn::kCe)
        << "packet " << i;
  }
  EXPECT_EQ(bench->world().counters().ecn_marks, 3u);
  queue.ecn = false;
  EXPECT_EQ(incast(queue, 5, {.at = kStart})->world().counters().ecn_marks, 0u);
  queue.ecn = true;
  EXPECT_EQ(
      incast(queue, 5, {.at = kStart, .ecn = world::Ecn::kNotEct})->world().counters().ecn_marks,
      0u);
}

TEST(SimWorld, PacketsThatDoNotFitTheQueueAreTrimmed) {
  const auto bench = incast(shallow(4), 8, {.at = kStart});
  const auto& received = bench->node(8).received;
  ASSERT_EQ(received.size(), 8u);
  std::size_t trimmed = 0;
  for (const auto& r : received) {
    if (r.datagram.dscp == world::Dscp::kTrimmable) {
      EXPECT_EQ(r.datagram.payload.size, 4096u);
      continue;
    }
    ++trimmed;
    EXPECT_EQ(r.datagram.dscp, world::Dscp::kTrimmedLastHop);
    EXPECT_EQ(r.datagram.payload.size, 0u);
    EXPECT_EQ(r.header_size, 36u);
  }
  // The queue holds four packets, and trimming begins in its last quarter: three packets always
  // fit.
  EXPECT_EQ(trimmed, 5u);
  EXPECT_EQ(bench->world().counters().trims, 5u);
  EXPECT_EQ(bench->world().counters().drops(), 0u);
  // Trimmed headers leave before data: only the packet being sent is ahead of them.
  EXPECT_EQ(received.front().datagram.dscp, world::Dscp::kTrimmable);
  EXPECT_EQ(received[1].datagram.dscp, world::Dscp::kTrimmedLastHop);
  EXPECT_EQ(received.back().datagram.dscp, world::Dscp::kTrimmable);
}

TEST(SimWorld, TrimmingInTheCoreIsNotReportedAsLastHop) {
  Bench bench(Bench::config(two_racks(16), shallow(4)));
  for (std::uint32_t host = 0; host < 8; ++host) bench.send(host, 8 + host, {.at = kStart});
  bench.world().step(us(1000));
  std::size_t trimmed = 0;
  for (std::uint32_t host = 8; host < 16; ++host) {
    ASSERT_EQ(bench.node(host).received.size(), 1u);
    trimmed += bench.node(host).received[0].datagram.dscp == world::Dscp::kTrimmed;
  }
  EXPECT_EQ(trimmed, 5u) << "all trimmed at the only uplink of their T0";
}

TEST(SimWorld, PacketsThatMayNotBeTrimmedAreDropped) {
  switching::QueueParams queue = shallow(4);
  EXPECT_EQ(incast(queue, 8, {.at = kStart, .dscp = world::Dscp::kNoTrim})
                ->world()
                .counters()
                .drops_queue,
            4u);
  queue.trimming = false;
  const auto bench = incast(queue, 8, {.at = kStart});
  EXPECT_EQ(bench->world().counters().drops_queue, 4u);
  EXPECT_EQ(bench->world().counters().trims, 0u);
  EXPECT_EQ(bench->node(8).received.size(), 4u);
}

TEST(SimWorld, ControlPacketsLeaveBeforeQueuedData) {
  Bench bench(one_switch(4));
  for (std::uint32_t host = 0; host < 2; ++host) {
    for (int i = 0; i < 4; ++i) bench.send(host, 3, {.at = kStart});
  }
  bench.send(
      2, 3,
      {.at = kStart + Bench::packet_time(), .size = 0, .dscp = world::Dscp::kControl, .mark = 9});
  bench.world().step(us(100));
  const auto& received = bench.node(3).received;
  ASSERT_EQ(received.size(), 9u);
  const auto at =
      std::find_if(received.begin(), received.end(), [](const auto& r) { return r.mark == 9; });
  EXPECT_LE(at - received.begin(), 2) << "only packets that were being sent may precede it";
}

TEST(SimWorld, ASharedBufferLimitsTheQueueOfAPort) {
  SimConfig config = Bench::config(one_switch(10), Bench::deep_queue());
  config.shared_buffer_bytes = 8 * Bench::packet_size();
  config.shared_alpha_percent = 50;
  Bench bench(config);
  for (std::uint32_t host = 0; host < 9; ++host)
    bench.send(host, 9, {.at = kStart, .dscp = world::Dscp::kNoTrim});
  bench.world().step(us(100));
  // The limit is half of the free bytes: after three packets no further one fits.
  EXPECT_EQ(bench.node(9).received.size(), 3u);
  EXPECT_EQ(bench.world().counters().drops_queue, 6u);
}

// --- the seam ---

TEST(SimWorld, AttachRefusesAddressesThatAreNotOneFreeHost) {
  SimWorld world(Bench::config(one_switch(2, 2), Bench::deep_queue()));
  ScriptedNode node;
  const auto port = [](fabric::HostIndex host, std::uint32_t plane) {
    return world::Address::of(fabric::address_of({.host = host, .plane = plane}));
  };
  const std::vector<world::Address> one = {port(0, 0)}, far = {port(7, 0), port(7, 1)},
                                    good = {port(0, 0), port(0, 1)};
  const std::vector<world::Address> strange = {world::Address{}, world::Address{}};
  EXPECT_FALSE(world.attach(one, node));
  EXPECT_FALSE(world.attach(far, node));
  EXPECT_FALSE(world.attach(strange, node));
  EXPECT_TRUE(world.attach(good, node));
  EXPECT_FALSE(world.attach(good, node)) << "the host already has a node";
}

TEST(SimWorld, PacketsToUnknownHostsAreDropped) {
  Bench bench(one_switch(2));
  bench.node(0).add(
      {.at = kStart, .peer = world::Address::of(fabric::address_of({.host = 99, .plane = 0}))});
  bench.node(0).add({.at = kStart, .peer = world::Address{}});
  bench.world().poll_node(0);
  bench.world().step(us(100));
  EXPECT_EQ(bench.world().counters().packets_sent, 2u);
  EXPECT_EQ(bench.world().counters().drops_route, 2u);
}

TEST(SimWorld, DeadlinesAreCalledOnTime) {
  Bench bench(one_switch(2));
  bench.send(0, 1, {.at = kStart});
  bench.send(0, 1, {.at = us(20)});
  bench.world().step(us(100));
  ASSERT_EQ(bench.node(0).deadlines.size(), 2u);
  EXPECT_EQ(bench.node(0).deadlines[0].at, kStart);
  EXPECT_EQ(bench.node(0).deadlines[1].at, us(20));
  EXPECT_EQ(bench.node(0).deadlines[1].late_by, Duration());
}

TEST(SimWorld, CaptureHoldsPacketsAsHostsSentThem) {
  Bench bench(two_racks(4));
  bench.world().set_capture(true);
  bench.send(0, 2, {.at = kStart, .mark = 7});
  bench.world().step(us(100));
  const auto captured = bench.world().take_captured();
  ASSERT_EQ(captured.size(), 1u);
  EXPECT_EQ(captured[0].at, kStart);
  EXPECT_EQ(captured[0].route.to, 2u);
  EXPECT_EQ(captured[0].header[0], std::byte{7});
  EXPECT_EQ(captured[0].payload.size, 4096u);
  EXPECT_EQ(captured[0].route.usids, fabric::usids_for(bench.topology(), 0, 0, 2, 0))
      << "all uSIDs, as sent";
  EXPECT_TRUE(bench.world().take_captured().empty());
}

TEST(SimWorld, TableOfCountersEqualsTheStruct) {
  const auto bench = incast(shallow(4), 8, {.at = kStart, .dscp = world::Dscp::kNoTrim});
  const SimCounters& counters = bench->world().counters();
  const CounterTable table = table_of(counters);
  expect_well_formed(table);
  EXPECT_EQ(value_of(table, "sim.packets_sent"), 8u);
  EXPECT_EQ(value_of(table, "sim.drops_queue"), 4u);
  EXPECT_EQ(value_of(table, "sim.drops"), counters.drops());
  EXPECT_EQ(value_of(table, "sim.events"), counters.events);
}

TEST(SimWorld, CountsThePacketsOfEachLink) {
  Bench bench(one_switch(2));
  bench.world().count_links();
  for (int i = 0; i < 5; ++i) bench.send(0, 1, {.at = kStart});
  bench.world().step(us(100));
  EXPECT_EQ(bench.world().link_packets()[bench.topology().host_up(0, 0)], 5u);
  EXPECT_EQ(bench.world().link_packets()[bench.topology().host_down(0, 1)], 5u);
  EXPECT_EQ(bench.world().link_packets()[bench.topology().host_down(0, 0)], 0u);
}

}  // namespace
}  // namespace weft::sim
