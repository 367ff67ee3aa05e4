// Life of QPs: creation, destruction, full queues, bounds.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "transport/endpoint.h"
#include "transport/test_pair.h"

namespace weft::transport {
namespace {

using test::Fate;
using test::make_evs;
using test::opcode_of;
using test::Pair;
using wire::Opcode;

// The source of a packet that inject() gives to an endpoint.
struct From {
  world::Address peer = Pair::address(1, 0);
  PortIndex port = 0;
  std::uint32_t entropy = 1;
};
template <typename Body>
void inject(Endpoint& endpoint, Time now, const wire::Bth& bth, const Body& body,
            const From& from = {}) {
  std::array<std::byte, wire::kHeaderSizeMax> bytes;
  const std::size_t size = wire::emit(bth, body, bytes);
  const world::Datagram d{.port = from.port,
                          .entropy = from.entropy,
                          .received_at = now,
                          .peer = from.peer,
                          .header = ConstBytes(bytes).first(size)};
  endpoint.on_datagrams(now, {&d, 1});
}

ErrorKind kind_of(const auto& result) {
  EXPECT_FALSE(result.has_value());
  return result.has_value() ? ErrorKind::kSystem : result.error().kind;
}

TEST(EndpointLife, InvalidConfigurationIsRefused) {
  auto options = Pair::defaults();
  options.endpoint.qp_count_max = 2;
  options.endpoint.ev_count_max = 40;
  options.endpoint.peer_count_max = 1;
  Pair pair(options);
  Endpoint& e = pair.end(0);
  const auto evs = make_evs({.ports = 2, .per_port = 8});
  QpConfig config = options.qp;
  EXPECT_EQ(kind_of(e.create_qp(config, Psn(0))), ErrorKind::kInvalid);  // no EVs
  config.evs = evs;
  for (std::uint32_t mpr : {0u, 256u}) {
    QpConfig bad = config;
    bad.mpr = mpr;
    EXPECT_EQ(kind_of(e.create_qp(bad, Psn(0))), ErrorKind::kInvalid);
    bad = config;
    bad.mpr_dest = mpr;
    EXPECT_EQ(kind_of(e.create_qp(bad, Psn(0))), ErrorKind::kInvalid);
  }
  const auto three = make_evs({.ports = 3, .per_port = 1});
  QpConfig far = config;
  far.evs = three;
  EXPECT_EQ(kind_of(e.create_qp(far, Psn(0))), ErrorKind::kInvalid);  // no such port

  const Qpn qpn = e.create_qp(config, Psn(0)).value();
  EXPECT_EQ(e.qp_state(qpn), QpState::kInit);
  EXPECT_EQ(kind_of(e.post_write(pair.now, qpn, {})), ErrorKind::kWrongState);
  EXPECT_TRUE(e.post_receive(pair.now, qpn, 1));
  EXPECT_EQ(kind_of(e.connect(pair.now, qpn + 1, {})), ErrorKind::kNotFound);
  PeerInfo peer;
  peer.ports = {Pair::address(1, 0), Pair::address(1, 1)};
  ASSERT_TRUE(e.connect(pair.now, qpn, peer));
  EXPECT_EQ(kind_of(e.connect(pair.now, qpn, peer)), ErrorKind::kWrongState);

  const Qpn second = e.create_qp(config, Psn(0)).value();
  EXPECT_EQ(kind_of(e.create_qp(config, Psn(0))), ErrorKind::kExhausted);  // QPs
  peer.ports = {Pair::address(2, 0), Pair::address(2, 1)};
  EXPECT_EQ(kind_of(e.connect(pair.now, second, peer)), ErrorKind::kExhausted);  // peers
  ASSERT_TRUE(e.destroy_qp(pair.now, second));
  const auto many = make_evs({.ports = 2, .per_port = 13});
  far.evs = many;
  EXPECT_EQ(kind_of(e.create_qp(far, Psn(0))), ErrorKind::kExhausted);  // EVs

  for (Qpn nobody : {Qpn{0}, Qpn{2}, second, Qpn{0xff'ffff}}) {
    EXPECT_EQ(kind_of(e.post_write(pair.now, nobody, {})), ErrorKind::kNotFound);
    EXPECT_EQ(kind_of(e.post_receive(pair.now, nobody, 1)), ErrorKind::kNotFound);
    EXPECT_EQ(kind_of(e.destroy_qp(pair.now, nobody)), ErrorKind::kNotFound);
    EXPECT_EQ(kind_of(e.fail_qp(pair.now, nobody)), ErrorKind::kNotFound);
    EXPECT_EQ(e.qp_state(nobody), QpState::kReset);
  }
}

TEST(EndpointLife, FullQueuesRefuseWork) {
  auto options = Pair::defaults();
  options.endpoint.send_queue_max = 4;
  options.endpoint.receive_queue_max = 8;
  options.endpoint.completion_queue_max = 10;
  Pair pair(options);
  const auto qps = pair.connect();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(pair.write(0, qps.qpn[0], {}));
  EXPECT_EQ(kind_of(pair.write(0, qps.qpn[0], {})), ErrorKind::kExhausted);
  // Ten places for completions: four are reserved by writes, so six receives fit.
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(pair.end(0).post_receive(pair.now, qps.qpn[0], 1));
  EXPECT_EQ(kind_of(pair.end(0).post_receive(pair.now, qps.qpn[0], 1)), ErrorKind::kExhausted);
  pair.run_for(Duration::ms(1));
  // Completed but not polled: the places are still reserved.
  EXPECT_EQ(kind_of(pair.write(0, qps.qpn[0], {})), ErrorKind::kExhausted);
  EXPECT_EQ(pair.completions(0).size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(pair.write(0, qps.qpn[0], {}));
}

TEST(EndpointLife, UnsignalledWritesGiveTheirReservedPlacesBack) {
  auto options = Pair::defaults();
  options.endpoint.completion_queue_max = 4;
  Pair pair(options);
  const auto qps = pair.connect();
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(pair.write(0, qps.qpn[0], {.signalled = false}));
    EXPECT_FALSE(pair.run_for(Duration::ms(1)));
    EXPECT_TRUE(pair.completions(0).empty());
  }
}

TEST(EndpointLife, QpNumbersAreUsedAgainOnlyAfterAllOthers) {
  auto options = Pair::defaults();
  options.endpoint.qp_count_max = 4;
  Pair pair(options);
  std::set<Qpn> used;
  for (int i = 0; i < 100; ++i) {
    const auto qps = pair.create();
    EXPECT_TRUE(used.insert(qps.qpn[0]).second);
    for (int end = 0; end < 2; ++end) ASSERT_TRUE(pair.end(end).destroy_qp(pair.now, qps.qpn[end]));
  }
}

TEST(EndpointLife, QpNumbersHave24BitsAndAreNeverReservedOnes) {
  auto options = Pair::defaults();
  options.endpoint.first_qpn = 0xff'fffe;
  options.endpoint.qp_count_max = 4;
  Pair pair(options);
  for (int i = 0; i < 10; ++i) {
    const auto qps = pair.connect();
    for (int end = 0; end < 2; ++end) {
      EXPECT_LE(qps.qpn[end], 0xff'ffffu);
      EXPECT_GT(qps.qpn[end], 2u);
    }
    ASSERT_TRUE(pair.write(0, qps.qpn[0], {}));
    EXPECT_FALSE(pair.run_for(Duration::ms(1)));
    EXPECT_EQ(pair.completions(0).size(), 1u);
    for (int end = 0; end < 2; ++end) ASSERT_TRUE(pair.end(end).destroy_qp(pair.now, qps.qpn[end]));
  }
}

TEST(EndpointLife, QpThatFailsBeforeItIsConnectedDropsAllPackets) {
  Pair pair;
  const auto qps = pair.create();
  Endpoint& e = pair.end(0);
  ASSERT_TRUE(e.post_receive(pair.now, qps.qpn[0], 5));
  ASSERT_TRUE(e.fail_qp(pair.now, qps.qpn[0]));
  EXPECT_EQ(pair.completions(0).size(), 1u);
  // The failed QP drops packets of every kind.
  const auto bth = [&](Opcode opcode) {
    return wire::Bth{.opcode = opcode, .dest_qpn = qps.qpn[0]};
  };
  inject(e, pair.now, bth(Opcode::kSack), wire::Sack{});
  inject(e, pair.now, bth(Opcode::kNack), wire::Nack{});
  inject(e, pair.now, bth(Opcode::kProbe), wire::Probe{});
  inject(e, pair.now, bth(Opcode::kTransportAck), wire::TransportAck{});
  inject(e, pair.now, bth(Opcode::kWriteOnly), wire::Write{});
  pair.run_for(Duration::ms(1));
  EXPECT_EQ(pair.sent, 0u);
  EXPECT_FALSE(e.connect(pair.now, qps.qpn[0], {}));
  EXPECT_TRUE(e.destroy_qp(pair.now, qps.qpn[0]));
}

TEST(EndpointLife, QpsWithPacketsInFlightCanBeDestroyed) {
  auto options = Pair::defaults();
  options.endpoint.psn_block_count_max = 8;
  Pair pair(options);
  for (int round = 0; round < 30; ++round) {
    const auto qps = pair.connect();
    for (int end = 0; end < 2; ++end) {
      for (std::uint64_t i = 0; i < 4; ++i) {
        ASSERT_TRUE(pair.end(end).post_receive(pair.now, qps.qpn[end], i)) << round;
        ASSERT_TRUE(pair.write(end, qps.qpn[end], {.size = 200'000}));
      }
    }
    pair.run_for(Duration::us(7 + round));
    for (int end = 0; end < 2; ++end) {
      ASSERT_TRUE(pair.end(end).destroy_qp(pair.now, qps.qpn[end]));
      EXPECT_EQ(pair.end(end).qp_state(qps.qpn[end]), QpState::kReset);
      pair.completions(end);
    }
    EXPECT_FALSE(pair.run_for(Duration::ms(5)));
  }
  EXPECT_GT(pair.counter(0, "transport.drop_unknown_qp"), 0u);
}

TEST(EndpointLife, CompletionsOutliveTheirQp) {
  Pair pair;
  const auto qps = pair.connect();
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = 5}));
  pair.run_for(Duration::ms(1));
  ASSERT_TRUE(pair.end(0).destroy_qp(pair.now, qps.qpn[0]));
  ASSERT_EQ(pair.completions(0).size(), 1u);
}

TEST(EndpointLife, PacketsForADestroyedQpAreDropped) {
  Pair pair;
  const auto qps = pair.connect();
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 50'000}));
  pair.run_for(Duration::us(3));
  ASSERT_TRUE(pair.end(1).destroy_qp(pair.now, qps.qpn[1]));
  // The peer goes on asking. The endpoint itself still answers EV probes.
  for (int i = 0; i < 50; ++i) {
    pair.run_for(Duration::us(300));
    inject(pair.end(1), pair.now,
           {.opcode = Opcode::kEndpointRequest, .dest_qpn = wire::kEndpointQpn, .psn = Psn(77)},
           wire::EndpointRequest{}, {.peer = Pair::address(0, 0)});
  }
  EXPECT_GT(pair.counter(1, "transport.drop_unknown_qp"), 0u);
}

TEST(EndpointLife, ManyQpsTakeFairTurns) {
  auto options = Pair::defaults();
  options.qp.nscc.enabled = false;
  options.qp.nscc.cwnd_bytes_max = 1 << 24;
  for (std::uint32_t burst : {1u, 4u}) {
    options.endpoint.burst = burst;
    Pair pair(options);
    for (int i = 0; i < 8; ++i) {
      const auto qps = pair.connect();
      ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 100 * 1024}));
    }
    std::map<std::uint32_t, std::uint32_t> count;
    std::array<world::Datagram, 64> out;
    std::array<world::PortRoom, 2> room = {world::PortRoom{3}, world::PortRoom{3}};
    for (int i = 0; i < 60; ++i) {
      const std::size_t n = pair.end(0).poll_transmit(pair.now, room, out);
      ASSERT_EQ(n, 6u);
      std::array<std::uint32_t, 2> on_port{};
      for (std::size_t k = 0; k < n; ++k) {
        ++on_port[out[k].port];
        ++count[wire::parse(out[k].header)->bth.dest_qpn];
      }
      EXPECT_EQ(on_port[0], 3u);
      EXPECT_EQ(on_port[1], 3u);
    }
    ASSERT_EQ(count.size(), 8u);
    for (const auto& [qpn, n] : count) EXPECT_NEAR(n, 45u, burst) << qpn;
  }
}

// In the real world the high bits of a QPN hold the process's slot.
TEST(EndpointLife, QpNumbersKeepTheirHighBits) {
  auto options = Pair::defaults();
  options.endpoint.first_qpn = 0x05'0013;
  options.endpoint.qpn_bits = 8;
  Pair pair(options);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 256; ++i) {
    const auto qps = pair.connect();
    EXPECT_EQ(qps.qpn[0] >> 8, 0x05'00u);
    seen.insert(qps.qpn[0]);
    ASSERT_TRUE(pair.end(0).destroy_qp(pair.now, qps.qpn[0]));
    ASSERT_TRUE(pair.end(1).destroy_qp(pair.now, qps.qpn[1]));
  }
  EXPECT_EQ(seen.size(), 256u);
}

// A write was paced under heavy incast, and completed before its pacing time. The next write must
// not wait for that time.
TEST(EndpointLife, WritePostedAfterAPacedWriteIsSentSoon) {
  auto options = Pair::defaults();
  options.qp.nscc.cwnd_bytes_initial = 1;
  Pair pair(options);
  const auto qps = pair.connect();
  Endpoint& e = pair.end(0);
  std::array<world::Datagram, 8> out;
  const std::array<world::PortRoom, 2> room = {world::PortRoom{8}, world::PortRoom{8}};
  // Polls until the next data packet goes, however long that takes.
  wire::Timestamp sent;
  const auto next_write = [&] {
    for (int i = 0; i < 50; ++i) {
      for (std::size_t n = e.poll_transmit(pair.now, room, out), k = 0; k < n; ++k) {
        const auto packet = wire::parse(out[k].header);
        if (const auto* write = std::get_if<wire::Write>(&packet->body)) {
          sent = write->sent;
          return true;
        }
      }
      if (e.next_deadline() == kNever) return false;
      pair.now = std::max(pair.now, e.next_deadline());
      e.on_deadline(pair.now, Duration());
    }
    return false;
  };
  const Psn psn = qps.first[0];
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = 1}));
  for (int trims = 0; trims < 5; ++trims) {
    ASSERT_TRUE(next_write());
    pair.now += Duration::us(10);
    inject(e, pair.now, {.opcode = Opcode::kNack, .dest_qpn = qps.qpn[0]},
           wire::Nack{.reason = wire::NackReason::kTrimmedLastHop, .psn = psn, .echo = sent});
  }
  // A second copy of the last packet arrived.
  inject(e, pair.now, {.opcode = Opcode::kSack, .dest_qpn = qps.qpn[0]},
         wire::Sack{.cack = psn, .rcvd_bytes_256 = 1});
  inject(e, pair.now, {.opcode = Opcode::kTransportAck, .dest_qpn = qps.qpn[0], .psn = psn},
         wire::TransportAck{});
  ASSERT_EQ(pair.completions(0).size(), 1u);
  // Old deadlines pass. Nothing is waited for any more.
  const Time done_at = pair.now;
  while (e.next_deadline() <= done_at + Duration::us(20)) {
    pair.now = std::max(pair.now, e.next_deadline());
    e.on_deadline(pair.now, Duration());
  }
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = 2}));
  EXPECT_TRUE(next_write());
  EXPECT_LT(pair.now - done_at, Duration::us(200));
}

}  // namespace
}  // namespace weft::transport
