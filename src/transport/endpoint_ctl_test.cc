// A controller and an endpoint: the controller sends requests to other hosts, disables ports,
// learns of bad EVs.
#include <gtest/gtest.h>

#include "transport/test_pair.h"

namespace weft::transport {
namespace {

using test::Fate;
using test::Pair;

Pair::Options with_asks(std::uint32_t most) {
  auto options = Pair::defaults();
  options.endpoint.ask_count_max = most;
  options.endpoint.ev_news_max = 64;
  return options;
}

TEST(EndpointCtl, ProbeWithoutAQpIsAnsweredWithItsRttAndPort) {
  Pair pair(with_asks(8));
  const EndpointAsk ask{.id = 7, .to = Pair::address(1, 1), .port = 1, .ev = 0xabcd};
  std::uint32_t on_the_wire = 0;
  pair.fate = [&](int from, const world::Datagram& d) {
    EXPECT_EQ(d.port, 1);
    EXPECT_EQ(d.entropy, 0xabcdu);
    EXPECT_EQ(d.dscp, from == 0 ? world::Dscp::kTrimmable : world::Dscp::kControl);
    ++on_the_wire;
    return Fate::kDeliver;
  };
  ASSERT_TRUE(pair.end(0).post_endpoint_request(pair.now, ask));
  pair.run_for(Duration::us(20));
  EXPECT_EQ(on_the_wire, 2u);
  EndpointAnswer answers[2];
  ASSERT_EQ(pair.end(0).poll_endpoint_answers(answers), 1u);
  EXPECT_EQ(answers[0].id, 7);
  EXPECT_EQ(answers[0].port, 1);
  EXPECT_EQ(answers[0].rtt, Pair::kDelay * 2);
  EXPECT_EQ(pair.end(0).poll_endpoint_answers(answers), 0u);
}

TEST(EndpointCtl, AnswersKeepTheirOrderAndUnansweredRequestsStayOpen) {
  Pair pair(with_asks(8));
  int seen = 0;
  pair.fate = [&](int from, const world::Datagram&) {
    return from == 0 && seen++ == 1 ? Fate::kDrop : Fate::kDeliver;
  };
  for (const std::uint16_t id : std::initializer_list<std::uint16_t>{3, 1, 2}) {
    ASSERT_TRUE(pair.end(0).post_endpoint_request(
        pair.now, {.id = id, .to = Pair::address(1, 0), .traffic = AskClass::kControl}));
  }
  EXPECT_EQ(pair.end(0).post_endpoint_request(pair.now, {.id = 3}).error().kind,
            ErrorKind::kInvalid);  // the id is in use
  EXPECT_EQ(pair.end(0).post_endpoint_request(pair.now, {.id = 9, .port = 2}).error().kind,
            ErrorKind::kInvalid);
  pair.run_for(Duration::us(20));
  EndpointAnswer answers[4];
  ASSERT_EQ(pair.end(0).poll_endpoint_answers(answers), 2u);
  EXPECT_EQ(answers[0].id, 3);
  EXPECT_EQ(answers[1].id, 2);
  EXPECT_FALSE(pair.end(0).post_endpoint_request(pair.now, {.id = 1}));
  pair.end(0).cancel_endpoint_requests();
  EXPECT_TRUE(pair.end(0).post_endpoint_request(pair.now, {.id = 1, .to = Pair::address(1, 0)}));
}

TEST(EndpointCtl, OpenRequestsAreBounded) {
  Pair pair(with_asks(4));
  for (std::uint16_t id = 1; id <= 4; ++id) {
    ASSERT_TRUE(pair.end(0).post_endpoint_request(pair.now, {.id = id, .to = Pair::address(1, 0)}));
  }
  EXPECT_EQ(pair.end(0).post_endpoint_request(pair.now, {.id = 5}).error().kind,
            ErrorKind::kExhausted);
  pair.run_for(Duration::us(20));  // answered but not polled: still no room
  EXPECT_FALSE(pair.end(0).post_endpoint_request(pair.now, {.id = 5}));
  EndpointAnswer answers[4];
  EXPECT_EQ(pair.end(0).poll_endpoint_answers(answers), 4u);
  EXPECT_TRUE(pair.end(0).post_endpoint_request(pair.now, {.id = 5, .to = Pair::address(1, 0)}));
}

TEST(EndpointCtl, AnswerFromAnotherHostIsIgnored) {
  Pair pair(with_asks(4));
  ASSERT_TRUE(pair.end(0).post_endpoint_request(
      pair.now, {.id = 1, .to = {.high = 0xfd00, .low = 0x99}}));  // reaches end 1
  pair.run_for(Duration::us(20));
  EndpointAnswer answers[1];
  EXPECT_EQ(pair.end(0).poll_endpoint_answers(answers), 0u);
  EXPECT_EQ(pair.counter(0, "transport.drop_unknown_peer"), 1u);
}

TEST(EndpointCtl, PortStatusUpdateMovesThePeersTraffic) {
  Pair pair(with_asks(4));
  const auto qps = pair.connect();
  ASSERT_TRUE(pair.end(0).post_endpoint_request(
      pair.now, {.id = 1,
                 .op = wire::EndpointOp::kPortStatusUpdate,
                 .to = Pair::address(1, 0),
                 .port_status = 0b010,  // bit 1: only port 1 is reachable
                 .traffic = AskClass::kControl}));
  pair.run_for(Duration::us(20));
  EndpointAnswer answers[1];
  EXPECT_EQ(pair.end(0).poll_endpoint_answers(answers), 1u);
  std::uint32_t data[2]{};
  pair.fate = [&](int from, const world::Datagram& d) {
    if (from == 1 && d.payload.size > 0) ++data[d.port];
    return Fate::kDeliver;
  };
  ASSERT_TRUE(pair.write(1, qps.qpn[1], {.size = 50'000}));
  pair.run_for(Duration::us(200));
  EXPECT_GT(data[0], 10u);
  EXPECT_EQ(data[1], 0u);
}

TEST(EndpointCtl, DisabledPortCarriesNothingWhateverItsCarrier) {
  Pair pair(with_asks(4));
  const auto qps = pair.connect();
  std::uint32_t sent[2]{};
  pair.fate = [&](int, const world::Datagram& d) {
    ++sent[d.port];
    return Fate::kDeliver;
  };
  pair.end(0).set_port_admin(pair.now, 1, false);
  pair.run_for(Duration::us(20));
  sent[0] = sent[1] = 0;
  pair.set_port(0, 1, false);  // the carrier is lost and returns
  pair.set_port(0, 1, true);
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 50'000}));
  ASSERT_TRUE(pair.write(1, qps.qpn[1], {.size = 50'000}));
  pair.run_for(Duration::us(500));
  EXPECT_GT(sent[0], 90u);
  EXPECT_EQ(sent[1], 0u);
  EXPECT_EQ(pair.completions(0).size(), 1u);
  EXPECT_EQ(pair.completions(1).size(), 1u);
  // Packets that arrive on a disabled port are dropped.
  ASSERT_TRUE(
      pair.end(1).post_endpoint_request(pair.now, {.id = 1, .to = Pair::address(0, 1), .port = 1}));
  pair.run_for(Duration::us(20));
  EndpointAnswer answers[1];
  EXPECT_EQ(pair.end(1).poll_endpoint_answers(answers), 0u);
  EXPECT_EQ(pair.counter(0, "transport.drop_port_disabled"), 1u);
  pair.end(0).set_port_admin(pair.now, 1, true);
  pair.run_for(Duration::us(20));
  sent[1] = 0;
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 50'000}));
  pair.run_for(Duration::us(500));
  EXPECT_GT(sent[1], 10u);
}

TEST(EndpointCtl, CondemnedAndRevivedEvsAreReported) {
  Pair pair(with_asks(4));
  const auto qps = pair.connect();
  EvNews news;
  while (pair.end(0).poll_ev_news(news)) {
  }
  // One EV loses everything for a while.
  const std::uint32_t victim = 3;
  std::uint32_t value = 0;
  bool chosen = false;
  pair.fate = [&](int from, const world::Datagram& d) {
    if (from != 0) return Fate::kDeliver;
    if (!chosen && d.payload.size > 0 && pair.sent > victim) {
      chosen = true;
      value = d.entropy;
    }
    return chosen && d.entropy == value ? Fate::kDrop : Fate::kDeliver;
  };
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 100'000}));
  pair.run_for(Duration::ms(1));
  ASSERT_TRUE(pair.end(0).poll_ev_news(news));
  EXPECT_EQ(news.qpn, qps.qpn[0]);
  EXPECT_EQ(news.ev.value, value);
  EXPECT_TRUE(news.bad);
  pair.fate = nullptr;
  pair.run_for(Duration::ms(20));
  ASSERT_TRUE(pair.end(0).poll_ev_news(news));
  EXPECT_EQ(news.ev.value, value);
  EXPECT_FALSE(news.bad);
  EXPECT_EQ(pair.end(0).ev_news_dropped(), 0u);
}

TEST(EndpointCtl, NsccTakesGivenParametersAndDerivesTheRest) {
  NsccConfig config;
  config.rate = Rate::gbps(100);
  config.base_rtt = Duration::us(12);
  const NsccParams derived = NsccParams::derive(config, 4096, kNicRules);
  config.fair_increase_bytes = 1000;
  config.eta_bytes = 100;
  config.fast_increase_q10 = 512;
  config.gamma_q10 = 256;
  config.jump_min_q10 = 128;
  config.adjust_bytes = 9999;
  config.adjust_period = Duration::us(3);
  const NsccParams told = NsccParams::derive(config, 4096, kNicRules);
  EXPECT_EQ(told.fair_increase, 1000);
  EXPECT_EQ(told.eta, 100);
  EXPECT_EQ(told.fast_q10, 512);
  EXPECT_EQ(told.gamma_q10, 256);
  EXPECT_EQ(told.jump_min_q10, 128);
  EXPECT_EQ(told.adjust_bytes, 9999);
  EXPECT_EQ(told.adjust_period, Duration::us(3));
  EXPECT_EQ(told.gain, derived.gain);
  EXPECT_EQ(told.window_max, derived.window_max);
}

TEST(EndpointCtl, CongestionParametersChangeWhileAQpRuns) {
  Pair pair;
  const auto qps = pair.connect();
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 200'000}));
  pair.run_for(Duration::us(30));
  const auto before = pair.end(0).view(qps.qpn[0]).cwnd_bytes;
  ASSERT_GT(before, 8'000);
  NsccConfig config = Pair::defaults().qp.nscc;
  config.cwnd_bytes_max = config.cwnd_bytes_initial = 8'000;
  ASSERT_TRUE(pair.end(0).set_congestion(qps.qpn[0], config));
  EXPECT_LE(pair.end(0).view(qps.qpn[0]).cwnd_bytes, 8'000);
  EXPECT_FALSE(pair.run_for(Duration::ms(5)));
  EXPECT_LE(pair.end(0).view(qps.qpn[0]).cwnd_bytes, 8'000);
  ASSERT_EQ(pair.completions(0).size(), 1u);
  // With the old parameters the window grows again.
  ASSERT_TRUE(pair.end(0).set_congestion(qps.qpn[0], Pair::defaults().qp.nscc));
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 400'000}));
  EXPECT_FALSE(pair.run_for(Duration::ms(5)));
  EXPECT_GT(pair.end(0).view(qps.qpn[0]).cwnd_bytes, 8'000);
  EXPECT_EQ(pair.end(0).set_congestion(0x777, config).error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace weft::transport
