// Two endpoints and a wire: writes in both directions, errors at both ends, drops and counters.
#include "transport/endpoint.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "transport/test_pair.h"

namespace weft::transport {
namespace {

using test::Fate;
using test::opcode_of;
using test::Pair;
using wire::Opcode;

TEST(Endpoint, WritesOfEverySizeInBothDirectionsArrive) {
  for (std::uint32_t size : {0u, 1u, 1023u, 1024u, 1025u, 100'000u}) {
    SCOPED_TRACE(size);
    Pair pair;
    const auto qps = pair.connect();
    const Pair::Write w{.id = 7, .size = size};
    for (int from = 0; from < 2; ++from) ASSERT_TRUE(pair.write(from, qps.qpn[from], w));
    EXPECT_FALSE(pair.run_for(Duration::ms(1)));
    for (int from = 0; from < 2; ++from) {
      const auto done = pair.completions(from);
      ASSERT_EQ(done.size(), 1u);
      EXPECT_EQ(done[0].id, 7u);
      EXPECT_EQ(done[0].qpn, qps.qpn[from]);
      EXPECT_EQ(done[0].status, Status::kOk);
      EXPECT_EQ(done[0].kind, CompletionKind::kWrite);
      EXPECT_TRUE(pair.arrived(from, w));
      EXPECT_EQ(pair.end(from).view(qps.qpn[from]).inflight_bytes, 0);
      EXPECT_EQ(pair.counter(from, "transport.retransmits"), 0u);
    }
  }
}

TEST(Endpoint, ImmediatesArriveInPostOrder) {
  Pair pair;
  const auto qps = pair.connect();
  for (std::uint64_t id = 0; id < 8; ++id)
    ASSERT_TRUE(pair.end(1).post_receive(pair.now, qps.qpn[1], 100 + id));
  for (std::uint32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(pair.write(
        0, qps.qpn[0],
        {.id = i, .offset = i * 4096, .size = 3000, .with_immediate = true, .immediate = i}));
  }
  EXPECT_FALSE(pair.run_for(Duration::ms(1)));
  const auto received = pair.completions(1);
  ASSERT_EQ(received.size(), 8u);
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(received[i].id, 100 + i);
    EXPECT_EQ(received[i].kind, CompletionKind::kReceiveImmediate);
    EXPECT_EQ(received[i].immediate, i);
    EXPECT_EQ(received[i].size, 3000u);
    EXPECT_EQ(received[i].qpn, qps.qpn[1]);
  }
  EXPECT_EQ(pair.completions(0).size(), 8u);
}

TEST(Endpoint, WriteCompletesAfterItsTransportAcksAreLost) {
  Pair pair;
  const auto qps = pair.connect();
  int dropped = 0;
  pair.fate = [&](int, const world::Datagram& d) {
    return opcode_of(d) == Opcode::kTransportAck && dropped++ < 3 ? Fate::kDrop : Fate::kDeliver;
  };
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 5000}));
  EXPECT_FALSE(pair.run_for(Duration::ms(2)));
  EXPECT_EQ(pair.completions(0).size(), 1u);
  EXPECT_EQ(dropped, 4);
  EXPECT_EQ(pair.counter(0, "transport.completion_resends"), 3u);
  EXPECT_EQ(pair.counter(0, "transport.timeouts"), 0u);
  EXPECT_EQ(pair.end(0).view(qps.qpn[0]).ev_bad, 0u);
}

TEST(Endpoint, WrongKeyFailsTheQpAtBothEnds) {
  for (bool nak_lost : {false, true}) {
    Pair pair;
    const auto qps = pair.connect();
    int naks = 0;
    pair.fate = [&](int from, const world::Datagram& d) {
      const bool nak = from == 1 && opcode_of(d) == Opcode::kTransportAck;
      return nak && naks++ == 0 && nak_lost ? Fate::kDrop : Fate::kDeliver;
    };
    ASSERT_TRUE(pair.end(1).post_receive(pair.now, qps.qpn[1], 9));
    ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = 1, .rkey = 0x99}));
    ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = 2}));
    pair.run_for(Duration::ms(5));
    const auto done = pair.completions(0);
    ASSERT_EQ(done.size(), 2u) << nak_lost;
    EXPECT_EQ(done[0].id, 1u);
    EXPECT_EQ(done[0].status, Status::kRemoteAccess);
    EXPECT_EQ(done[1].status, Status::kFlushed);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(pair.end(i).qp_state(qps.qpn[i]), QpState::kError);
    const auto flushed = pair.completions(1);
    ASSERT_EQ(flushed.size(), 1u);
    EXPECT_EQ(flushed[0].id, 9u);
    EXPECT_EQ(flushed[0].status, Status::kFlushed);
    EXPECT_EQ(pair.memory[1].times_placed(), 0u);
    EXPECT_FALSE(pair.write(0, qps.qpn[0], {}));
    EXPECT_FALSE(pair.end(1).post_receive(pair.now, qps.qpn[1], 10));
  }
}

TEST(Endpoint, ImmediateWithoutAPostedReceiveFailsTheQp) {
  Pair pair;
  const auto qps = pair.connect();
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.with_immediate = true}));
  pair.run_for(Duration::ms(5));
  const auto done = pair.completions(0);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, Status::kRemoteOperation);
  EXPECT_EQ(pair.end(1).qp_state(qps.qpn[1]), QpState::kError);
}

TEST(Endpoint, QpThatFailedTellsItsPeer) {
  Pair pair;
  const auto qps = pair.connect();
  ASSERT_TRUE(pair.end(1).fail_qp(pair.now, qps.qpn[1]));
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {}));
  pair.run_for(Duration::ms(1));
  const auto done = pair.completions(0);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, Status::kRemoteOperation);
}

TEST(Endpoint, SilentPeerFailsTheQpAfterAllRetries) {
  auto options = Pair::defaults();
  options.qp.retry = {.timeout = 10, .linear_count = 2, .exponential_count = 2};
  Pair pair(options);
  const auto qps = pair.connect();
  pair.fate = [](int, const world::Datagram&) { return Fate::kDrop; };
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {}));
  EXPECT_TRUE(pair.run_for(Duration::us(8'100)));
  EXPECT_TRUE(pair.end(0).view(qps.qpn[0]).peer_silent);
  EXPECT_TRUE(pair.completions(0).empty());
  EXPECT_FALSE(pair.run_for(Duration::ms(2)));
  const auto done = pair.completions(0);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, Status::kRetryExceeded);
  EXPECT_EQ(pair.end(0).qp_state(qps.qpn[0]), QpState::kError);
}

TEST(Endpoint, PausedPeerCausesNoLoss) {
  for (std::int64_t pause_ms : {5, 50, 2000}) {
    SCOPED_TRACE(pause_ms);
    Pair pair;
    const auto qps = pair.connect();
    for (std::uint32_t i = 0; i < 8; ++i)
      ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = i, .offset = i << 17, .size = 1 << 17}));
    pair.run_for(Duration::us(25));
    ASSERT_GT(pair.end(0).view(qps.qpn[0]).incomplete, 3u);
    pair.fate = [](int, const world::Datagram&) { return Fate::kDrop; };
    EXPECT_TRUE(pair.run_for(Duration::ms(pause_ms)));
    EXPECT_EQ(pair.end(0).view(qps.qpn[0]).ev_bad, 0u);
    EXPECT_TRUE(pair.end(0).view(qps.qpn[0]).peer_silent);
    pair.fate = nullptr;
    // The peer sends first. That is enough for this end to continue at once.
    ASSERT_TRUE(pair.write(1, qps.qpn[1], {.id = 99, .size = 10}));
    pair.run_for(Duration::ms(1));
    EXPECT_EQ(pair.completions(0).size(), 8u);
    EXPECT_EQ(pair.counter(0, "transport.evs_condemned"), 0u);
  }
}

TEST(Endpoint, EveryWriteCompletesUnderLossDamageAndTrims) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    Pair pair;
    const auto qps = pair.connect();
    pair.fate = [&](int, const world::Datagram&) {
      const std::uint32_t draw = prng.below(100);
      if (draw < 4) return Fate::kDrop;
      if (draw < 6) return Fate::kDamage;
      if (draw < 12) return Fate::kTrim;
      if (draw < 15) return Fate::kTrimLastHop;
      if (draw < 20) return Fate::kDouble;
      return draw < 30 ? Fate::kMark : Fate::kDeliver;
    };
    std::uint32_t posted[2] = {0, 0}, done[2] = {0, 0}, received[2] = {0, 0};
    for (int step = 0; step < 2000 && (done[0] < 30 || done[1] < 30); ++step) {
      for (int i = 0; i < 2; ++i) {
        if (posted[i] < 30 && pair.end(1 - i).post_receive(pair.now, qps.qpn[1 - i], posted[i])) {
          ASSERT_TRUE(pair.write(i, qps.qpn[i],
                                 {.id = posted[i],
                                  .offset = posted[i] * 0x8000,
                                  .size = 20'000,
                                  .with_immediate = true,
                                  .immediate = posted[i]}));
          ++posted[i];
        }
      }
      pair.run_for(Duration::us(100));
      for (int i = 0; i < 2; ++i) {
        for (const Completion& c : pair.completions(i)) {
          ASSERT_EQ(c.status, Status::kOk);
          if (c.kind == CompletionKind::kWrite) {
            ASSERT_EQ(c.id, done[i]++);
          } else {
            ASSERT_EQ(c.immediate, received[i]++);
          }
        }
      }
    }
    pair.fate = nullptr;
    pair.run_for(Duration::ms(20));
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(done[i], 30u);
      for (std::uint32_t id = 0; id < 30; ++id) {
        EXPECT_TRUE(pair.arrived(i, {.offset = id * 0x8000, .size = 20'000}));
      }
      EXPECT_EQ(pair.end(i).view(qps.qpn[i]).inflight_bytes, 0);
      EXPECT_EQ(pair.counter(i, "transport.unbalanced"), 0u);
      EXPECT_GT(pair.counter(i, "transport.drop_damaged"), 0u);
    }
  }
}

TEST(Endpoint, ReceiveLimitReachesTheRequestor) {
  auto options = Pair::defaults();
  options.qp.dynamic_mpr = true;
  Pair pair(options);
  const auto qps = pair.connect();
  ASSERT_TRUE(pair.end(1).limit_receive(qps.qpn[1], {.mpr = 1, .cwnd_penalty = 127}));
  EXPECT_FALSE(pair.end(1).limit_receive(qps.qpn[1], {.cwnd_penalty = 128}));
  EXPECT_FALSE(pair.end(1).limit_receive(qps.qpn[1], {.mpr = 9}));
  EXPECT_FALSE(pair.end(1).limit_receive(0x999, {}));
  const std::int64_t before = pair.end(0).view(qps.qpn[0]).cwnd_bytes;
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 1 << 19}));
  pair.run_for(Duration::us(60));
  EXPECT_LT(pair.end(0).view(qps.qpn[0]).cwnd_bytes, before / 4);
  ASSERT_TRUE(pair.end(1).limit_receive(qps.qpn[1], {}));
  pair.run_for(Duration::us(30));
  EXPECT_GT(pair.end(0).view(qps.qpn[0]).cwnd_bytes, before / 2);
  EXPECT_FALSE(pair.run_for(Duration::ms(1)));
  EXPECT_EQ(pair.completions(0).size(), 1u);
}

// Only the write that the NAK refused gets that status, wherever the write stands in the queue.
TEST(Endpoint, NakFailsTheWriteThatItNames) {
  Pair pair;
  const auto qps = pair.connect();
  pair.fate = [&](int from, const world::Datagram& d) {
    // The first packet of the first write never arrives: that write is incomplete when the NAK
    // comes.
    const bool first =
        from == 0 && wire::is_write(opcode_of(d)) && wire::parse(d.header)->bth.psn == qps.first[0];
    return first ? Fate::kDrop : Fate::kDeliver;
  };
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = 1, .size = 5000}));
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = 2, .size = 100}));
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = 3, .size = 100, .rkey = 0xbad}));
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = 4, .size = 100}));
  pair.run_for(Duration::ms(50));
  const auto done = pair.completions(0);
  ASSERT_EQ(done.size(), 4u);
  for (const Completion& c : done)
    EXPECT_EQ(c.status, c.id == 3 ? Status::kRemoteAccess : Status::kFlushed) << c.id;
}

// The posted write fails no sooner than after ten seconds and no later than after forty.
void expect_given_up_in_time(Pair& pair) {
  pair.run_for(Duration::s(10));
  EXPECT_TRUE(pair.completions(0).empty());
  pair.run_for(Duration::s(30));
  const auto done = pair.completions(0);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, Status::kRetryExceeded);
}

// Posted while no port is up: the write fails in time instead of waiting for ever.
TEST(Endpoint, WriteWithoutAnyPortFailsInTime) {
  Pair pair;
  const auto qps = pair.connect();
  pair.set_port(0, 0, false);
  pair.set_port(0, 1, false);
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {}));
  expect_given_up_in_time(pair);
}

// The peer is alive and answers, but data never arrives: retries are bounded all the same.
TEST(Endpoint, AnswersWithoutProgressDoNotPostponeTheRetryLimit) {
  Pair pair;
  const auto qps = pair.connect();
  pair.fate = [](int, const world::Datagram& d) {
    return wire::is_write(opcode_of(d)) ? Fate::kDrop : Fate::kDeliver;
  };
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {}));
  expect_given_up_in_time(pair);
}

}  // namespace
}  // namespace weft::transport
