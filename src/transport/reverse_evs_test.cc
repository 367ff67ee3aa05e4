#include "transport/reverse_evs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "transport/test_memory.h"

namespace weft::transport {
namespace {

constexpr Duration kConfirm = Duration::ms(1);

Time at(std::int64_t us) { return Time::from_start(Duration::us(us)); }

// A peer with two planes of four EVs each.
struct Bench {
  Bench() { ReverseEvs::adopt(at(0), peer, paths, 2, prng); }

  // Sends control packets until each plane has been checked.
  std::vector<test::Sent> check_all(Time now) {
    for (int i = 0; i < 30; ++i) {
      evs.check({.now = now, .index = 7, .paths = paths, .ports_up = ports_up, .port_count = 2},
                peer, prng, ids, control);
    }
    return test::take_all(control);
  }
  bool answer(Time now, std::uint16_t id) { return ReverseEvs::on_answer(now, peer, 2, id); }
  Peer::Reverse& plane(PortIndex port) { return peer.planes[port].reverse; }

  std::vector<fabric::Ev> list = test::make_evs({.ports = 2, .per_port = 4});
  PathSet paths{{.port_count = 2}, list};
  Prng prng{1};
  RequestIds ids;
  ControlQueue control{64};
  ReverseEvs evs{kConfirm};
  Peer peer;
  PortMask ports_up = 0b11;
};

std::uint16_t id_of(const test::Sent& sent) {
  return static_cast<std::uint16_t>(sent.packet.bth.psn.value());
}

TEST(ProbeTokens, SixteenTokensAtOnceThenAThousandPerSecond) {
  ProbeTokens tokens;
  int taken = 0;
  while (tokens.take(at(0))) ++taken;
  EXPECT_EQ(taken, 16);
  EXPECT_FALSE(tokens.take(at(999)));
  EXPECT_TRUE(tokens.take(at(1000)));
  EXPECT_FALSE(tokens.take(at(1000)));
  for (taken = 0; tokens.take(at(1'000'000)); ++taken) continue;
  EXPECT_EQ(taken, 16);
}

TEST(ProbeTokens, OneTokenPerHundredPackets) {
  ProbeTokens tokens;
  while (tokens.take(at(0))) {
  }
  for (int i = 0; i < 99; ++i) tokens.on_packet_sent();
  EXPECT_FALSE(tokens.take(at(0)));
  tokens.on_packet_sent();
  EXPECT_TRUE(tokens.take(at(0)));
}

TEST(ReverseEvs, FirstQpGivesEachPlaneItsReverseEv) {
  Bench bench;
  EXPECT_EQ(bench.peer.present, 0b11);
  for (const PortIndex port : {PortIndex{0}, PortIndex{1}}) {
    EXPECT_TRUE(bench.plane(port).present);
    EXPECT_NE(bench.paths.find({.value = bench.plane(port).ev, .port = port}), PathSet::kNone);
  }
  // A second QP changes nothing.
  const std::uint32_t ev = bench.plane(0).ev;
  for (int i = 0; i < 8; ++i) ReverseEvs::adopt(at(5), bench.peer, bench.paths, 2, bench.prng);
  EXPECT_EQ(bench.plane(0).ev, ev);
}

TEST(ReverseEvs, NewReverseEvCountsAsConfirmed) {
  Bench bench;
  bench.peer = {};
  ReverseEvs::adopt(at(500), bench.peer, bench.paths, 2, bench.prng);
  EXPECT_TRUE(bench.check_all(at(1499)).empty());
  EXPECT_EQ(bench.check_all(at(1500)).size(), 2u);
}

TEST(ReverseEvs, UnconfirmedReverseEvIsProbedOnItself) {
  Bench bench;
  EXPECT_TRUE(bench.check_all(at(999)).empty());
  const auto sent = bench.check_all(at(1000));
  ASSERT_EQ(sent.size(), 2u);  // one per plane, however often it is checked
  for (const test::Sent& probe : sent) {
    EXPECT_EQ(probe.control.port.rule, PortChoice::PortRule::kOnly);
    EXPECT_EQ(probe.control.entropy, bench.plane(probe.control.port.port).ev);
    EXPECT_EQ(probe.control.peer, 7u);
  }
  EXPECT_EQ(bench.evs.probes(), 2u);
}

TEST(ReverseEvs, AnsweredProbeConfirmsTheReverseEv) {
  Bench bench;
  EXPECT_FALSE(bench.answer(at(10), 0));  // 0 is no id
  const auto sent = bench.check_all(at(1000));
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_FALSE(bench.answer(at(1010), 999));
  for (const test::Sent& probe : sent) EXPECT_TRUE(bench.answer(at(1010), id_of(probe)));
  EXPECT_FALSE(bench.answer(at(1010), id_of(sent[0])));
  EXPECT_TRUE(bench.check_all(at(2009)).empty());
  EXPECT_EQ(bench.check_all(at(2010)).size(), 2u);
}

TEST(ReverseEvs, UnansweredProbeIsSentAgainWithTheSameId) {
  Bench bench;
  const auto first = bench.check_all(at(1000));
  EXPECT_TRUE(bench.check_all(at(1499)).empty());
  const auto again = bench.check_all(at(1500));
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(std::minmax(id_of(first[0]), id_of(first[1])),
            std::minmax(id_of(again[0]), id_of(again[1])));
}

TEST(ReverseEvs, UnansweredProbeIsSentAgainOnOtherEvs) {
  Bench bench;
  std::set<std::uint32_t> evs;
  for (std::int64_t us = 1000; us < 10'000; us += 1000) {
    for (const test::Sent& probe : bench.check_all(at(us))) {
      if (probe.control.port.port == 1) evs.insert(probe.control.entropy);
    }
  }
  EXPECT_GT(evs.size(), 1u);
}

TEST(ReverseEvs, ProbesKeepToTheirBudget) {
  Bench bench;
  std::size_t probes = 0;
  for (std::int64_t us = 1000; us < 51'000; us += 500) probes += bench.check_all(at(us)).size();
  EXPECT_GE(probes, 60u);
  EXPECT_LE(probes, 16u + 51u);
}

TEST(ReverseEvs, PlaneIsInDoubtWhenLaterProbesOfAnotherPlaneAreAnswered) {
  Bench bench;
  const auto answer_plane_1 = [&](Time now) {
    for (const test::Sent& probe : bench.check_all(now)) {
      if (probe.control.port.port == 1) bench.answer(now, id_of(probe));
    }
  };
  bench.plane(1).confirmed_at = at(1000);
  answer_plane_1(at(1000));  // only plane 0 is probed
  EXPECT_EQ(bench.plane(0).failures, 0);
  for (std::int64_t us = 2000; us <= 12'000; us += 1000) answer_plane_1(at(us));
  EXPECT_EQ(bench.plane(0).failures, Peer::kFailuresMax);
  EXPECT_EQ(bench.plane(1).failures, 0);
  EXPECT_FALSE(bench.peer.can_carry_control(0, 0b11));
  EXPECT_TRUE(bench.answer(at(12'001), bench.plane(0).request_id));
  EXPECT_TRUE(bench.peer.can_carry_control(0, 0b11));
}

TEST(ReverseEvs, OneAnswerCountsAgainstAPlaneOnce) {
  Bench bench;
  bench.check_all(at(1000));
  bench.peer.answered_probe_began_at = at(1001);  // a probe on another plane was answered
  for (std::int64_t us = 2000; us <= 5000; us += 1000) bench.check_all(at(us));
  EXPECT_EQ(bench.plane(0).failures, 1);
  EXPECT_EQ(bench.plane(1).failures, 1);
}

TEST(ReverseEvs, NoPlaneIsInDoubtWhileNoProbeIsAnswered) {
  Bench bench;
  for (std::int64_t us = 1000; us <= 9000; us += 1000) bench.check_all(at(us));
  EXPECT_EQ(bench.plane(0).failures, 0);
  EXPECT_EQ(bench.plane(1).failures, 0);
}

TEST(ReverseEvs, PortThatIsDownOrUnreachableIsNotProbed) {
  Bench bench;
  bench.ports_up = 0b10;
  bench.peer.ports.reachable = 0b01;
  EXPECT_TRUE(bench.check_all(at(1000)).empty());
}

TEST(ReverseEvs, DeniedReverseEvIsReplacedByAnotherOfItsPlane) {
  Bench bench;
  const fabric::Ev ev{.value = bench.plane(0).ev, .port = 0};
  bench.check_all(at(1000));
  for (const fabric::Ev& other : bench.list) {  // denial of other EVs changes nothing
    if (other.port == 0 && other.value != ev.value)
      ReverseEvs::deny(bench.peer, bench.paths, other);
    EXPECT_EQ(bench.plane(0).ev, ev.value);
  }
  bench.paths.deny(at(1001), bench.paths.find(ev), true);
  ReverseEvs::deny(bench.peer, bench.paths, ev);
  EXPECT_TRUE(bench.plane(0).present);
  EXPECT_NE(bench.plane(0).ev, ev.value);
  EXPECT_EQ(bench.plane(0).request_id, 0);  // the old EV's probe says nothing about the new EV
  for (const auto& probe : bench.check_all(at(1999))) EXPECT_EQ(probe.control.port.port, 1);
}

TEST(ReverseEvs, PlaneWithoutAnAllowedEvIsNotUsedUnlessItIsTheLast) {
  Bench bench;
  const auto deny_plane = [&](PortIndex port) {
    for (const fabric::Ev& ev : bench.list) {
      if (ev.port != port) continue;
      bench.paths.deny(at(1), bench.paths.find(ev), true);
      ReverseEvs::deny(bench.peer, bench.paths, ev);
    }
  };
  deny_plane(0);
  EXPECT_FALSE(bench.plane(0).present);
  EXPECT_EQ(bench.peer.present, 0b10);
  for (const auto& probe : bench.check_all(at(2000))) EXPECT_EQ(probe.control.port.port, 1);
  deny_plane(1);
  EXPECT_EQ(bench.peer.present, 0b10);
  ReverseEvs::allow(at(3000), bench.peer, bench.list[0]);
  ReverseEvs::allow(at(3000), bench.peer, bench.list[2]);  // plane 0 has an allowed EV again
  EXPECT_EQ(bench.peer.present, 0b11);
  EXPECT_EQ(bench.plane(0).ev, bench.list[0].value);
  EXPECT_EQ(bench.plane(0).confirmed_at, at(3000));
}

}  // namespace
}  // namespace weft::transport
