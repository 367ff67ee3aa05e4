// A host refuses a QP's packets: the peer is gone, or the refusal is forged.
#include <gtest/gtest.h>

#include "transport/endpoint.h"
#include "transport/test_pair.h"

namespace weft::transport {
namespace {

using test::Fate;
using test::opcode_of;
using test::Pair;
using wire::Opcode;

class EndpointRefused : public ::testing::Test {
 protected:
  // The world tells end 0 that the host of end 1 refused a packet.
  void refuse(const Address& peer = Pair::address(1, 0)) {
    const auto note = world::Datagram::refusal(0, peer);
    pair.end(0).on_datagrams(pair.now, {&note, 1});
  }
  void kill_peer() {
    pair.fate = [](int, const world::Datagram&) { return Fate::kDrop; };
  }
  QpState state() { return pair.end(0).qp_state(qps.qpn[0]); }

  Pair pair;
  Pair::Qps qps = pair.connect();
};

TEST_F(EndpointRefused, KilledPeerFailsTheQpWithinASecond) {
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = 1, .size = 100'000}));
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.id = 2, .size = 100}));
  kill_peer();
  refuse();
  pair.run_for(Duration::ms(500));
  EXPECT_EQ(state(), QpState::kReadyToSend);  // the QP fails only after three unanswered probes
  EXPECT_TRUE(pair.completions(0).empty());
  pair.run_for(Duration::ms(500));
  EXPECT_EQ(state(), QpState::kError);
  const auto done = pair.completions(0);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, Status::kRetryExceeded);
  EXPECT_EQ(done[1].status, Status::kFlushed);
  EXPECT_EQ(pair.counter(0, "transport.qps_refused"), 1u);
}

TEST_F(EndpointRefused, SilenceWithoutARefusalDoesNotFailTheQpSoon) {
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 100'000}));
  kill_peer();
  pair.run_for(Duration::s(5));
  EXPECT_EQ(state(), QpState::kReadyToSend);
}

TEST_F(EndpointRefused, IdleQpProbesThreeTimesOnEachPlane) {
  int asked[2] = {0, 0};
  pair.fate = [&](int from, const world::Datagram& d) {
    if (from == 0 && opcode_of(d) == Opcode::kProbe) ++asked[d.port];
    return Fate::kDrop;
  };
  refuse();
  pair.run_for(Duration::s(1));
  EXPECT_EQ(state(), QpState::kError);
  EXPECT_EQ(asked[0], 3);
  EXPECT_EQ(asked[1], 3);
}

TEST_F(EndpointRefused, ForgedRefusalChangesNothing) {
  for (int i = 0; i < 40; ++i) {
    const Pair::Write write{.id = static_cast<std::uint64_t>(i), .size = 5000};
    ASSERT_TRUE(pair.write(0, qps.qpn[0], write));
    refuse();
    refuse(Pair::address(1, 1));
    pair.run_for(Duration::ms(50));
    ASSERT_EQ(pair.completions(0).size(), 1u) << i;
  }
  EXPECT_EQ(state(), QpState::kReadyToSend);
  EXPECT_EQ(pair.counter(0, "transport.refusals"), 80u);
  EXPECT_EQ(pair.counter(0, "transport.qps_refused"), 0u);
  // However many refusals were forged: one probe on each of two planes per 20 ms.
  EXPECT_LE(pair.counter(0, "transport.reliability_probes"), 2u * 100u);
  pair.run_for(Duration::s(1));
  EXPECT_EQ(pair.end(0).next_deadline(), kNever);  // no timer is left
}

TEST_F(EndpointRefused, QpSurvivesIfOnlyTheSixthProbeIsAnswered) {
  int asked = 0;
  pair.fate = [&](int from, const world::Datagram& d) {
    if (from == 1) return Fate::kDeliver;
    return opcode_of(d) == Opcode::kProbe && ++asked == 6 ? Fate::kDeliver : Fate::kDrop;
  };
  refuse();
  pair.run_for(Duration::s(5));
  EXPECT_EQ(asked, 6);
  EXPECT_EQ(state(), QpState::kReadyToSend);
}

TEST_F(EndpointRefused, AnswerThatWasInFlightWhenThePeerDiedDoesNotKeepTheQpAlive) {
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 1000}));
  pair.run_for(Duration::us(7));  // the answer is in flight
  refuse();
  pair.run_for(Duration::us(10));
  kill_peer();
  ASSERT_TRUE(pair.write(0, qps.qpn[0], {.size = 1000}));
  pair.run_for(Duration::us(10));
  refuse();
  pair.run_for(Duration::s(1));
  EXPECT_EQ(state(), QpState::kError);
}

TEST_F(EndpointRefused, RefusalOfAnUnknownHostIsDropped) {
  refuse(Pair::address(7, 0));
  EXPECT_EQ(pair.counter(0, "transport.drop_unknown_peer"), 1u);
  pair.run_for(Duration::s(1));
  EXPECT_EQ(pair.counter(0, "transport.reliability_probes"), 0u);
}

TEST_F(EndpointRefused, DestroyedQpProbesNoMore) {
  kill_peer();
  refuse();
  ASSERT_TRUE(pair.end(0).destroy_qp(pair.now, qps.qpn[0]));
  EXPECT_FALSE(pair.run_for(Duration::s(1)));
}

}  // namespace
}  // namespace weft::transport
