// QPs whose ends share a link (such as shared memory): an MTU and a SACK threshold of their own,
// paths that are known only with the peer, and answers that wait for data.
#include <gtest/gtest.h>

#include "transport/endpoint.h"
#include "transport/software_ends.h"
#include "transport/test_pair.h"

namespace weft::transport {
namespace {

using test::opcode_of;
using test::Pair;
using wire::Opcode;

// Both ends' QPs, configured for a link they turn out to share: port 1 only, 8 KiB packets.
Pair::Qps connect_by_link(Pair& pair, std::uint32_t sack_bytes = 64u << 10) {
  const fabric::Ev ev{.value = 99, .port = 1};
  auto qps = pair.create();
  QpConfig config = Pair::defaults().qp;
  config.mtu = 8192;
  config.sack_bytes = sack_bytes;
  config.evs = {&ev, 1};
  config.nscc.enabled = false;
  config.nscc.cwnd_bytes_max = 1u << 20;
  for (int i = 0; i < Pair::kEnds; ++i) pair.end(i).configure_qp(qps.qpn[i], config).value();
  for (int i = 0; i < Pair::kEnds; ++i) pair.connect_one(qps, i);
  return qps;
}

TEST(EndpointLink, QpHasItsOwnMtuAndPath) {
  Pair pair;
  const auto qps = connect_by_link(pair);
  const auto other = pair.connect();  // a QP without the link: the endpoint's MTU, both ports
  std::uint64_t large = 0, small = 0;
  bool elsewhere = false;
  pair.fate = [&](int from, const world::Datagram& d) {
    if (from == 0 && d.payload.size > 0) {
      (d.payload.size > 1024 ? large : small) += 1;
      elsewhere |= d.payload.size > 1024 && (d.port != 1 || d.entropy != 99);
    }
    return test::Fate::kDeliver;
  };
  const Pair::Write first{.id = 1, .size = 100'000},
      second{.id = 2, .offset = 200'000, .size = 10'240};
  ASSERT_TRUE(pair.write(0, qps.qpn[0], first));
  ASSERT_TRUE(pair.write(0, other.qpn[0], second));
  EXPECT_FALSE(pair.run_for(Duration::ms(2)));
  EXPECT_EQ(pair.completions(0).size(), 2u);
  EXPECT_TRUE(pair.arrived(0, first));
  EXPECT_TRUE(pair.arrived(0, second));
  EXPECT_EQ(large, 13u);
  EXPECT_EQ(small, 10u);
  EXPECT_FALSE(elsewhere);
  EXPECT_EQ(pair.counter(0, "transport.retransmits"), 0u);
  EXPECT_EQ(pair.counter(0, "transport.unbalanced"), 0u);
}

// One end found the link and the other did not: each sends on its own paths and accepts both packet
// sizes.
TEST(EndpointLink, EndsMayDifferInPathAndMtu) {
  Pair pair;
  const fabric::Ev ev{.value = 99, .port = 1};
  const auto qps = pair.create();
  QpConfig config = Pair::defaults().qp;
  config.mtu = config.mtu_dest = 8192;
  config.evs = {&ev, 1};
  config.nscc.enabled = false;
  ASSERT_TRUE(pair.end(0).configure_qp(qps.qpn[0], config));
  config = Pair::defaults().qp;
  config.mtu_dest = 8192;
  const auto evs = test::make_evs({.ports = 2, .per_port = 8});
  config.evs = evs;
  ASSERT_TRUE(pair.end(1).configure_qp(qps.qpn[1], config));
  for (int i = 0; i < Pair::kEnds; ++i) pair.connect_one(qps, i);
  std::uint32_t largest[2] = {};
  pair.fate = [&](int from, const world::Datagram& d) {
    largest[from] = std::max(largest[from], d.payload.size);
    return test::Fate::kDeliver;
  };
  for (int i = 0; i < Pair::kEnds; ++i)
    ASSERT_TRUE(pair.write(i, qps.qpn[i], {.id = 7, .size = 100'000}));
  EXPECT_FALSE(pair.run_for(Duration::ms(2)));
  for (int i = 0; i < Pair::kEnds; ++i) {
    const auto done = pair.completions(i);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, Status::kOk);
  }
  EXPECT_EQ(largest[0], 8192u);
  EXPECT_EQ(largest[1], 1024u);
}

TEST(EndpointLink, QpHasItsOwnSackThreshold) {
  const auto sacks = [](std::uint32_t sack_bytes) {
    Pair pair;
    const auto qps = connect_by_link(pair, sack_bytes);
    EXPECT_TRUE(pair.write(0, qps.qpn[0], {.size = 800'000}));
    EXPECT_FALSE(pair.run_for(Duration::ms(5)));
    EXPECT_EQ(pair.completions(0).size(), 1u);
    return pair.counter(1, "transport.sacks_sent");
  };
  EXPECT_GE(sacks(16u << 10), 40u);
  EXPECT_LE(sacks(1u << 20), 8u);
}

TEST(EndpointLink, ConfigureKeepsTheNumberAndThePostedReceives) {
  Pair pair;
  auto qps = pair.create();
  ASSERT_TRUE(pair.end(1).post_receive(pair.now, qps.qpn[1], 5));
  const fabric::Ev ev{.value = 7, .port = 0}, nowhere{.value = 7, .port = 5};
  QpConfig config = Pair::defaults().qp;
  config.evs = {&nowhere, 1};
  EXPECT_EQ(pair.end(1).configure_qp(qps.qpn[1], config).error().kind, ErrorKind::kInvalid);
  config.evs = {&ev, 1};
  EXPECT_EQ(pair.end(1).configure_qp(0x55'5555, config).error().kind, ErrorKind::kNotFound);
  // Many times: repeated configuration must not use up any bound.
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(pair.end(1).configure_qp(qps.qpn[1], config));
  for (int i = 0; i < Pair::kEnds; ++i) pair.connect_one(qps, i);
  EXPECT_EQ(pair.end(1).configure_qp(qps.qpn[1], config).error().kind, ErrorKind::kWrongState);
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.with_immediate = true, .immediate = 3}));
  EXPECT_FALSE(pair.run_for(Duration::ms(2)));
  const auto received = pair.completions(1);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].id, 5u);
}

Pair::Options with_delay() {
  Pair::Options options = Pair::defaults();
  options.endpoint.answers_delay = Duration::us(30);
  options.qp.peer = PeerKind::kSoftware;
  options.endpoint.send_queue_max = 64;
  options.qp.nscc.base_rtt = Duration::us(100);
  return options;
}

// A packet of end 0 that the test delivers to end 1 by hand.
class Caught {
 public:
  bool is_there() const { return !datagram_.header.empty(); }
  void take(const world::Datagram& d) {
    datagram_ = d;
    std::copy(d.header.begin(), d.header.end(), header_.begin());
    datagram_.header = ConstBytes(header_).first(d.header.size());
    datagram_.peer = Pair::address(0, d.port);
  }
  void give(Pair& pair) {
    pair.end(1).on_datagrams(pair.now, {&datagram_, 1});
    datagram_.header = {};
  }

 private:
  world::Datagram datagram_;
  std::array<std::byte, wire::kHeaderSizeMax> header_;
};

TEST(EndpointLink, PeerThatIsSentNoDataIsAnsweredAtOnce) {
  Pair pair(with_delay());
  const auto qps = pair.connect();
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {}));
  pair.run_for(Pair::kDelay * 2);
  EXPECT_EQ(pair.completions(0).size(), 1u);
}

TEST(EndpointLink, AnswersFollowDataOnOnePortAfterADelay) {
  Pair pair(with_delay());
  const auto qps = pair.connect();
  std::vector<Opcode> from_b;
  std::vector<PortIndex> ports;
  Caught request;
  pair.fate = [&](int from, const world::Datagram& d) {
    if (from == 0 && !request.is_there()) {
      request.take(d);
      return test::Fate::kDrop;  // the test delivers it by hand
    }
    if (from == 1) {
      from_b.push_back(opcode_of(d));
      ports.push_back(d.port);
    }
    return test::Fate::kDeliver;
  };
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {}));
  pair.run_for(Duration::us(1));
  ASSERT_TRUE(request.is_there());
  // The request arrives, and the application replies before anything else is sent.
  request.give(pair);
  ASSERT_TRUE(pair.write(1, qps.qpn[1], {.offset = 5000}));
  pair.run_for(Duration::us(20));
  EXPECT_EQ(from_b, std::vector<Opcode>{Opcode::kWriteOnly});
  pair.run_for(Duration::us(40));
  ASSERT_GE(from_b.size(), 2u);
  EXPECT_EQ(from_b[from_b.size() - 2], Opcode::kSack);
  EXPECT_EQ(from_b.back(), Opcode::kTransportAck);
  EXPECT_EQ(ports[ports.size() - 2], ports.back());  // the last two packets took the same port
  EXPECT_FALSE(pair.run_for(Duration::ms(1)));
  EXPECT_EQ(pair.completions(0).size(), 1u);
  EXPECT_EQ(pair.completions(1).size(), 1u);
  EXPECT_EQ(pair.counter(0, "transport.retransmits"), 0u);
}

// End 1 echoes every write. End 0 posts its next write when the last one is complete.
class Echo {
 public:
  Echo() : pair_(with_delay()) {
    pair_.fate = [this](int from, const world::Datagram& d) {
      if (from == 1 || opcode_of(d) != Opcode::kWriteOnly) return test::Fate::kDeliver;
      request_.take(d);
      return test::Fate::kDrop;
    };
  }
  Pair& pair() { return pair_; }
  // End 0 writes; end 1 receives it and writes back. Does not wait for completions.
  void go(const Pair::Qps& qps) {
    ASSERT_TRUE(pair_.write(0, qps.qpn[0], {}));
    pair_.run_for(Duration::us(1));
    ASSERT_TRUE(request_.is_there());
    request_.give(pair_);
    ASSERT_TRUE(pair_.write(1, qps.qpn[1], {.offset = 5000}));
  }
  // Runs one round, and returns the time until the write of end 0 is complete.
  Duration round(const Pair::Qps& qps) {
    const Time start = pair_.now;
    go(qps);
    while (pair_.completions(0).empty() && pair_.now - start < Duration::ms(1))
      pair_.run_for(Duration::us(1));
    return pair_.now - start;
  }

 private:
  Pair pair_;
  Caught request_;
};

TEST(EndpointLink, PeerBlockedOnDelayedAnswersIsAnsweredAtOnce) {
  Echo echo;
  const auto qps = echo.pair().connect();
  for (int again = 0; again < 2; ++again) {
    for (int i = 0; i < 2; ++i) EXPECT_GE(echo.round(qps), Duration::us(30)) << i;
    for (int i = 0; i < 10; ++i) EXPECT_LT(echo.round(qps), Duration::us(20)) << i;
    // After 50 ms new proof is needed, since the program may have changed.
    echo.pair().run_for(Duration::ms(60));
  }
}

TEST(EndpointLink, PeerThatPausesOccasionallyIsNotTakenForBlocked) {
  Echo echo;
  const auto qps = echo.pair().connect();
  constexpr int kNotWaitedFor = 16;  // data packets that are answered together
  for (int i = 0; i < 5; ++i) {
    EXPECT_GE(echo.round(qps), Duration::us(30)) << i;
    for (int n = 0; n < kNotWaitedFor; ++n) echo.go(qps);
    echo.pair().run_for(Duration::us(5));
    EXPECT_EQ(echo.pair().completions(0).size(), kNotWaitedFor);
    echo.pair().completions(1);
  }
}

TEST(EndpointLink, PeerBlockedOnEverySecondAnswerIsNotTakenForBlocked) {
  Echo echo;
  const auto qps = echo.pair().connect();
  for (int i = 0; i < 4; ++i) {
    // The peer is blocked on one delayed answer, and not on the next.
    for (int n = 0; n < 2; ++n) EXPECT_GE(echo.round(qps), Duration::us(30)) << i;
    echo.pair().run_for(Duration::us(500));
  }
}

TEST(EndpointLink, PeerThatSendsNothingAfterAnAnswerIsNotTakenForBlocked) {
  Echo echo;
  const auto qps = echo.pair().connect();
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE(echo.round(qps), Duration::us(30));
    echo.pair().run_for(Duration::us(500));
  }
}

TEST(EndpointLink, BlockedPeerIsAnsweredAtOnceWhileAnotherQpsAnswersWait) {
  Echo echo;
  const auto waits = echo.pair().connect(), other = echo.pair().connect();
  for (int i = 0; i < 2; ++i) echo.round(waits);
  EXPECT_LT(echo.round(waits), Duration::us(20));
  echo.go(other);
  echo.pair().run_for(Duration::us(1));
  EXPECT_LT(echo.round(waits), Duration::us(20));
}

TEST(EndpointLink, AnswersLeaveWhileBothDirectionsSendData) {
  Pair pair(with_delay());
  const auto qps = pair.connect();
  for (int from = 0; from < 2; ++from) {
    for (std::uint64_t id = 0; id < 4; ++id)
      ASSERT_TRUE(pair.write(from, qps.qpn[from], {.id = id, .size = 200'000}));
  }
  EXPECT_FALSE(pair.run_for(Duration::ms(5)));
  for (int from = 0; from < 2; ++from) {
    EXPECT_EQ(pair.completions(from).size(), 4u);
    EXPECT_EQ(pair.counter(from, "transport.retransmits"), 0u);
  }
}

// Probes of a dead plane are answered only after the next probe is due. The plane comes back all the
// same (docs/decisions/0033).
TEST(EndpointLink, DeadPlaneComesBackOverALongPath) {
  auto options = Pair::defaults();
  options.delay = Duration::ms(3);
  configure_for_process(options.qp, PeerKind::kSoftware);
  options.qp.mpr = options.qp.mpr_dest = 32;
  Pair pair(options);
  const auto qps = pair.connect();
  bool dead = false;
  pair.fate = [&](int, const world::Datagram& d) {
    return dead && d.port == 1 ? test::Fate::kDrop : test::Fate::kDeliver;
  };
  const auto write_for = [&](Duration time) {
    std::uint64_t id = 0;
    for (const Time end = pair.now + time; pair.now < end; pair.run_for(Duration::ms(1))) {
      (void)pair.write(0, qps.qpn[0], {.id = ++id, .size = 8 * 1024});
      (void)pair.completions(0);
    }
  };
  write_for(Duration::ms(100));
  ASSERT_EQ(pair.end(0).view(qps.qpn[0]).ports_left_out, 0);
  dead = true;
  write_for(Duration::ms(100));
  ASSERT_EQ(pair.end(0).view(qps.qpn[0]).ports_left_out, 0b10);
  dead = false;
  write_for(Duration::ms(50));
  EXPECT_EQ(pair.end(0).view(qps.qpn[0]).ports_left_out, 0);
}

// The packet that would have asked for a SACK is lost. The data before it is reported on every
// plane all the same, so that the requestor learns of the loss before its own timers fire.
TEST(EndpointLink, UnreportedDataIsReportedOnEveryPlaneWhenNothingFollows) {
  const auto sacks_of = [](PeerKind peer) {
    auto options = Pair::defaults();
    options.qp.peer = peer;
    options.qp.sack_bytes = 1u << 20;
    options.qp.nscc.base_rtt = Duration::ms(1);  // the requestor's timers fire later
    Pair pair(options);
    const auto qps = pair.connect();
    std::uint32_t data = 0, sacks = 0;
    PortMask on = 0;
    pair.fate = [&](int from, const world::Datagram& d) {
      if (from == 0 && d.payload.size > 0 && ++data == 8)
        return test::Fate::kDrop;  // the last packet, which asks for a SACK
      if (from == 1 && opcode_of(d) == Opcode::kSack && data == 8) {
        ++sacks;
        on = static_cast<PortMask>(on | 1u << d.port);
      }
      return test::Fate::kDeliver;
    };
    EXPECT_TRUE(pair.write(0, qps.qpn[0], {.id = 1, .size = 8 * 1024}));
    pair.run_for(Duration::us(8));
    const std::uint32_t before = sacks;
    pair.run_for(kSoftwareRules.sack_after_quiet + Duration::us(1));
    return std::pair(sacks - before, on);
  };
  EXPECT_EQ(sacks_of(PeerKind::kNic).first, 0u);
  const auto [sacks, on] = sacks_of(PeerKind::kSoftware);
  EXPECT_EQ(sacks, 2u);
  EXPECT_EQ(on, 0b11);
}

}  // namespace
}  // namespace weft::transport
