// The counter tables of an endpoint after traffic, losses and failures.
#include <gtest/gtest.h>

#include <map>

#include "base/test_counters.h"
#include "transport/test_pair.h"

namespace weft::transport {
namespace {

using test::Fate;
using test::Pair;

TEST(EndpointCounters, EveryCounterHasAUnitAndItsOwnNameAndLabels) {
  for (const std::uint32_t ports : {1u, 2u, 8u}) {
    Pair::Options options = Pair::defaults();
    options.endpoint.port_count = ports;
    Pair pair(options);
    pair.connect();
    expect_well_formed(pair.end(0).counters());
    expect_well_formed(pair.end(0).peer_counters());
  }
}

TEST(EndpointCounters, CountersNeverFallAndOnlyPeersHaveGauges) {
  Pair pair;
  const auto qps = pair.connect();
  std::uint32_t n = 0;
  pair.fate = [&n](int, const world::Datagram&) {
    return n++ % 7 == 3 ? Fate::kDrop : n % 11 == 5 ? Fate::kTrim : Fate::kDeliver;
  };
  for (std::uint64_t id = 0; id < 8; ++id)
    ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = id, .size = 20'000}));
  CounterTable before = pair.end(0).counters();
  for (int i = 0; i < 50; ++i) {
    pair.run_for(Duration::us(20));
    const CounterTable after = pair.end(0).counters();
    expect_no_count_fell(before, after);
    before = after;
  }
  for (const Counter& counter : before) EXPECT_EQ(counter.kind, CounterKind::kCount);
  for (const Counter& gauge : pair.end(0).peer_counters())
    EXPECT_EQ(gauge.kind, CounterKind::kGauge) << text_of(gauge);
}

TEST(EndpointCounters, PacketsBytesAndRetransmitsAreCountedOnThePlaneThatCarriesThem) {
  Pair pair;
  const auto qps = pair.connect();
  std::map<PortIndex, std::uint64_t> packets, bytes, control, placed;
  bool dropped = false;
  pair.fate = [&](int from, const world::Datagram& d) {
    if (from != 0) return Fate::kDeliver;
    if (d.payload.size == 0) {
      ++control[d.port];
      return Fate::kDeliver;
    }
    ++packets[d.port];
    bytes[d.port] += d.payload.size;
    if (!std::exchange(dropped, true)) return Fate::kDrop;
    placed[d.port] += d.payload.size;
    return Fate::kDeliver;
  };
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 50'000}));
  pair.run_for(Duration::ms(5));
  ASSERT_EQ(pair.completions(0).size(), 1u);
  std::uint64_t retransmits = 0;
  for (const Counter& counter : pair.end(0).counters()) {
    if (counter.name == "transport.retransmits") retransmits += counter.value;
    if (counter.name == "transport.data_packets") {
      EXPECT_EQ(counter.value, packets[*counter.labels.plane]) << text_of(counter);
    }
    if (counter.name == "transport.data_bytes") {
      EXPECT_EQ(counter.value, bytes[*counter.labels.plane]) << text_of(counter);
    }
    if (counter.name == "transport.control_packets") {
      EXPECT_EQ(counter.value, control[*counter.labels.plane]) << text_of(counter);
    }
  }
  for (const Counter& counter : pair.end(1).counters()) {
    if (counter.name != "transport.bytes_placed") continue;
    EXPECT_EQ(counter.value, placed[*counter.labels.plane]) << text_of(counter);
  }
  EXPECT_EQ(placed[0] + placed[1], 50'000u);
  EXPECT_EQ(packets.size(), 2u);
  EXPECT_GE(retransmits, 1u);
  EXPECT_EQ(pair.counter(0, "transport.retransmits"), retransmits);
  EXPECT_EQ(pair.counter(0, "transport.data_bytes"), bytes[0] + bytes[1]);
}

TEST(EndpointCounters, EvsOfALostPlaneAreCountedAsCondemnedOnThatPlane) {
  Pair pair;
  const auto qps = pair.connect();
  pair.fate = [](int, const world::Datagram& d) {
    return d.port == 1 && d.payload.size > 0 ? Fate::kDrop : Fate::kDeliver;
  };
  for (std::uint64_t id = 0; id < 8; ++id)
    ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = id, .size = 50'000}));
  pair.run_for(Duration::ms(20));
  for (const Counter& counter : pair.end(0).counters()) {
    if (counter.name != "transport.evs_condemned" && counter.name != "transport.planes_condemned")
      continue;
    if (counter.labels.plane == 0) {
      EXPECT_EQ(counter.value, 0u) << text_of(counter);
    }
  }
  EXPECT_GT(
      pair.counter(0, "transport.evs_condemned") + pair.counter(0, "transport.planes_condemned"),
      0u);
}

TEST(EndpointCounters, AFailedQpIsCountedOnceByItsReason) {
  Pair pair;
  const auto first = pair.connect(), second = pair.connect();
  ASSERT_TRUE(pair.write(0, first.qpn[0], {.rkey = 0x66}));
  pair.run_for(Duration::ms(1));
  ASSERT_TRUE(pair.end(0).fail_qp(pair.now, second.qpn[0]));
  ASSERT_TRUE(pair.end(0).fail_qp(pair.now, second.qpn[0]));
  EXPECT_EQ(pair.counter(0, "transport.qp_failures_remote_access"), 1u);
  EXPECT_EQ(pair.counter(0, "transport.qp_failures_flushed"), 1u);
  EXPECT_EQ(pair.counter(0, "transport.qp_failures"), 2u);
  EXPECT_EQ(pair.counter(1, "transport.qp_failures_local_access"), 1u);
}

TEST(EndpointCounters, GaugesOfAPeerAreTheSumsOverItsQps) {
  Pair pair;
  const auto first = pair.connect(), second = pair.connect();
  ASSERT_TRUE(pair.write(0, first.qpn[0], {.size = 50'000}));
  pair.run_for(Duration::us(3));
  const CounterTable table = pair.end(0).peer_counters();
  const Endpoint::QpView a = pair.end(0).view(first.qpn[0]), b = pair.end(0).view(second.qpn[0]);
  EXPECT_EQ(value_of(table, "transport.qps"), 2u);
  EXPECT_EQ(value_of(table, "transport.window"),
            static_cast<std::uint64_t>(a.cwnd_bytes + b.cwnd_bytes));
  EXPECT_GT(a.inflight_bytes, 0);
  EXPECT_EQ(value_of(table, "transport.inflight"),
            static_cast<std::uint64_t>(a.inflight_bytes + b.inflight_bytes));
  EXPECT_EQ(value_of(table, "transport.rtt_min"),
            static_cast<std::uint64_t>((Pair::kDelay * 2).ps()));
  for (const Counter& counter : table) {
    ASSERT_TRUE(counter.labels.peer.has_value());
    EXPECT_EQ(counter.labels.peer->ip, Pair::address(1, 0).ip());
  }
  ASSERT_TRUE(pair.end(0).destroy_qp(pair.now, first.qpn[0]));
  ASSERT_TRUE(pair.end(0).destroy_qp(pair.now, second.qpn[0]));
  EXPECT_TRUE(pair.end(0).peer_counters().empty());
}

TEST(EndpointCounters, PeersBeyondTheBoundShareOneEntry) {
  constexpr std::uint32_t kPeers = kLabelledPeersMax + 10;
  Pair::Options options = Pair::defaults();
  options.endpoint.qp_count_max = options.endpoint.peer_count_max = kPeers;
  Pair pair(options);
  for (std::uint32_t i = 0; i < kPeers; ++i) {
    const Pair::Qps qps = pair.create();
    PeerInfo peer;
    for (std::uint32_t port = 0; port < 2; ++port)
      peer.ports[port] = {.high = 0xfd01, .low = i * 2 + port + 1};
    peer.host = i;
    peer.qpn = 0x200 + i;
    ASSERT_TRUE(pair.end(0).connect(pair.now, qps.qpn[0], peer));
  }
  const CounterTable table = pair.end(0).peer_counters();
  expect_well_formed(table);
  std::uint32_t labels = 0;
  for (const Counter& counter : table) {
    if (counter.name != "transport.qps") continue;
    ++labels;
    EXPECT_EQ(counter.value, counter.labels.peer == kOtherPeers ? 10u : 1u) << text_of(counter);
  }
  EXPECT_EQ(labels, kLabelledPeersMax + 1);
  EXPECT_EQ(value_of(table, "transport.qps"), kPeers);
}

}  // namespace
}  // namespace weft::transport
