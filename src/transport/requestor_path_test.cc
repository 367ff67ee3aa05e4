// The requestor condemns paths on evidence of losses, and takes them back.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "transport/requestor.h"
#include "transport/test_requestor.h"

namespace weft::transport {
namespace {

using test::RequestorBench;
using Out = RequestorBench::Out;

constexpr Duration kRtt = Duration::us(10);

// A long write, one packet per microsecond, each acknowledged an RTT later unless `is_lost` says
// otherwise.
class Flow {
 public:
  explicit Flow(RequestorBench& bench) : bench_(bench) {}
  template <typename IsLost>
  std::vector<Out> send(int count, IsLost is_lost) {
    std::vector<Out> sent;
    for (int i = 0; i < count; ++i) {
      if (bench_.requestor.incomplete() < 2) bench_.post(1 << 20);
      for (; !arriving_.empty() && arriving_.front().first <= bench_.now; arriving_.pop_front()) {
        bench_.acknowledge(arriving_.front().second);
      }
      if (const auto out = bench_.poll()) {
        sent.push_back(*out);
        if (!is_lost(*out)) arriving_.emplace_back(bench_.now + kRtt, *out);
      }
      bench_.pass(Duration::us(1));
    }
    return sent;
  }
  std::vector<Out> send_well(int count) {
    return send(count, [](const Out&) { return false; });
  }

 private:
  RequestorBench& bench_;
  std::deque<std::pair<Time, Out>> arriving_;
};

// Between software ends, and the shorter of two planes is lost: docs/decisions/0036.
TEST(RequestorPath, WindowKeepsItsSizeWhenTheRemainingPlaneIsLonger) {
  auto options = RequestorBench::defaults();
  options.config.peer = PeerKind::kSoftware;
  constexpr Duration kWay = Duration::us(100);
  options.config.nscc.base_rtt = kWay;
  RequestorBench bench(options);
  bench.post(1u << 31);
  // Sends one window each round trip. Returns the number of packets in the last one.
  const auto run = [&bench](Duration rtt, Duration length, PortMask usable) {
    std::size_t packets = 0;
    for (const Time end = bench.now + length; bench.now < end;) {
      const auto out = bench.poll_all(usable);
      bench.pass(rtt);
      for (const Out& packet : out) bench.acknowledge(packet);
      packets = out.size();
    }
    return packets;
  };
  const std::size_t before = run(kWay, Duration::ms(5), 0b11);
  auto context = bench.context();
  bench.requestor.on_port_lost(context, 0);
  EXPECT_GE(run(kWay * 6, Duration::ms(600), 0b10), before);
}

TEST(RequestorPath, FailedQpHasNothingToSendWhenAPortIsLost) {
  RequestorBench bench;
  bench.post(3 * 4096);
  ASSERT_FALSE(bench.poll_all().empty());
  auto context = bench.context();
  bench.requestor.on_port_lost(context, 0);  // packets in flight on it are lost
  bench.requestor.fail(Status::kRetryExceeded);
  bench.requestor.on_port_lost(context, 1);
  EXPECT_EQ(bench.inflight(), 0);
  EXPECT_FALSE(bench.requestor.has_work());
}

TEST(RequestorPath, LossyEvIsCondemnedAndProbed) {
  RequestorBench bench;
  const auto bad = test::make_evs({.ports = 2, .per_port = 4})[3];
  const auto sent = Flow(bench).send(400, [&](const Out& out) { return out.outgoing.ev == bad; });
  const auto slot = bench.requestor.paths().find(bad);
  EXPECT_EQ(bench.requestor.paths().state(slot), EvState::kAssumedBad);
  EXPECT_EQ(bench.counters.evs_condemned.sum(), 1u);
  EXPECT_EQ(bench.counters.planes_condemned.sum(), 0u);
  EXPECT_EQ(bench.prober.watched(), 1u);
  for (std::size_t i = 200; i < sent.size(); ++i) EXPECT_NE(sent[i].outgoing.ev, bad);
}

TEST(RequestorPath, EvThatCannotBeProbedIsNotCondemned) {
  auto options = RequestorBench::defaults();
  options.watched_max = 0;
  RequestorBench bench(options);
  const auto bad = test::make_evs({.ports = 2, .per_port = 4})[3];
  Flow(bench).send(400, [&](const Out& out) { return out.outgoing.ev == bad; });
  EXPECT_EQ(bench.requestor.paths().state(bench.requestor.paths().find(bad)), EvState::kGood);
}

TEST(RequestorPath, DeadPlaneIsCondemnedWhileTheOtherDelivers) {
  auto options = RequestorBench::defaults();
  options.evs = {.ports = 2, .per_port = 16};
  options.ev_active = 32;
  RequestorBench bench(options);
  Flow flow(bench);
  flow.send_well(100);
  flow.send(100, [](const Out& out) { return out.outgoing.ev.port == 1; });
  EXPECT_EQ(bench.counters.planes_condemned.sum(), 1u);
  EXPECT_EQ(bench.requestor.paths().planes_down(), 0b10);
  EXPECT_GE(bench.prober.watched(), 3u);
  for (const Out& out : flow.send_well(100)) EXPECT_EQ(out.outgoing.ev.port, 0);
}

// An EV that this QP takes back may still be condemned by another QP to the same peer: its probes
// continue.
TEST(RequestorPath, EvWhoseLossIsWithdrawnIsStillProbed) {
  RequestorBench bench;
  bench.post(24 * 1024);
  std::vector<Out> lost;
  std::optional<Out> last;
  for (int i = 0; i < 24; ++i, bench.pass(Duration::us(1))) {
    const auto out = bench.poll();
    ASSERT_TRUE(out);
    if (lost.empty() || out->outgoing.ev == lost[0].outgoing.ev) {
      lost.push_back(*out);
    } else {
      bench.arrive(*out);
      last = out;
    }
  }
  ASSERT_GE(lost.size(), 2u);
  bench.take_sack(bench.sack(RequestorBench::trigger(*last)));
  ASSERT_EQ(bench.counters.evs_condemned.sum(), 1u);
  ASSERT_EQ(bench.prober.watched(), 1u);
  for (const Out& out : lost) bench.acknowledge(out);
  EXPECT_EQ(bench.counters.evs_withdrawn, 1u);
  EXPECT_EQ(bench.requestor.paths().bad(), 0u);
  EXPECT_EQ(bench.prober.watched(), 1u);
}

// A burst on one EV ends when the EV's plane is condemned.
TEST(RequestorPath, BurstEndsWhenItsPlaneIsCondemned) {
  auto options = RequestorBench::defaults();
  options.evs = {.ports = 2, .per_port = 16};
  options.ev_active = 32;
  for (options.burst = 2; options.burst <= 12; ++options.burst) {
    RequestorBench bench(options);
    Flow flow(bench);
    flow.send_well(100);
    flow.send(200, [&](const Out& out) {
      if (bench.counters.planes_condemned.sum() > 0) {
        EXPECT_EQ(out.outgoing.ev.port, 0) << "burst " << options.burst;
      }
      return out.outgoing.ev.port == 1;
    });
    EXPECT_EQ(bench.counters.planes_condemned.sum(), 1u) << "burst " << options.burst;
  }
}

TEST(RequestorPath, MarkSkipsOnceAndAlwaysSkipCondemns) {
  RequestorBench bench;
  bench.post(4 * 1024);
  const auto packets = bench.poll_all();
  bench.pass(kRtt);
  const auto slot = [&](std::size_t i) {
    return bench.requestor.paths().find(packets[i].outgoing.ev);
  };
  const auto take_sack = [&](std::size_t i, wire::PathMark mark) {
    bench.arrive(packets[i]);
    auto trigger = RequestorBench::trigger(packets[i]);
    trigger.mark = mark;
    bench.take_sack(bench.sack(trigger));
  };
  take_sack(0, wire::PathMark::kSkipOnce);
  EXPECT_EQ(bench.requestor.paths().state(slot(0)), EvState::kSkip);
  EXPECT_EQ(bench.counters.marks, 1u);
  take_sack(1, wire::PathMark::kAlwaysSkip);
  EXPECT_EQ(bench.requestor.paths().state(slot(1)), EvState::kAssumedBad);
  EXPECT_EQ(bench.prober.watched(), 1u);
  EXPECT_EQ(bench.counters.evs_condemned.sum(), 1u);
  take_sack(2, wire::PathMark::kNone);
  EXPECT_EQ(bench.requestor.paths().state(slot(2)), EvState::kGood);
}

TEST(RequestorPath, SilentPeerChangesNoEvAndIsProbedOnEachPlane) {
  RequestorBench bench;
  bench.post(20 * 1024);
  bench.poll_all();
  const std::int64_t window = bench.requestor.congestion().window();
  while (bench.counters.timeouts < 3) {
    const bool timer = bench.counters.timeouts > 0;
    const std::uint64_t before = bench.counters.timeouts;
    ASSERT_EQ(bench.to_deadline(), Status::kOk);
    const auto sent = test::take_all(bench.control);
    if (bench.counters.timeouts == before) continue;
    ASSERT_EQ(sent.size(), 2u) << timer;
    EXPECT_EQ(sent[0].control.port, PortChoice::only(0));
    EXPECT_EQ(sent[1].control.port, PortChoice::only(1));
    for (const auto& s : sent) {
      EXPECT_TRUE(std::holds_alternative<wire::Probe>(s.packet.body));
      EXPECT_FALSE(s.control.data_class);
    }
  }
  EXPECT_TRUE(bench.requestor.is_peer_silent());
  EXPECT_EQ(bench.counters.silences, 3u);
  EXPECT_EQ(bench.requestor.paths().bad(), 0u);
  EXPECT_EQ(bench.requestor.paths().active(), 8u);
  EXPECT_EQ(bench.requestor.congestion().window(), window);
  EXPECT_EQ(bench.requestor.window().lost(), 0u);
  // The peer is back: it is probed at once, and the retry interval starts anew.
  auto c = bench.context();
  bench.requestor.on_heard(c);
  EXPECT_FALSE(bench.requestor.is_peer_silent());
  EXPECT_EQ(test::only<wire::Probe>(test::take_all(bench.control)).size(), 1u);
}

// Peers usually fall silent in the middle of a flow, after a SACK that let more packets go.
TEST(RequestorPath, PeerThatFallsSilentInAFlowCausesNoLoss) {
  RequestorBench bench;
  Flow flow(bench);
  flow.send_well(200);
  const std::uint64_t losses = bench.counters.lost_timer + bench.counters.lost_inferred;
  while (bench.counters.timeouts < 10) {
    ASSERT_EQ(bench.to_deadline(), Status::kOk);
    bench.poll_all();
    bench.control = ControlQueue(4096);
  }
  EXPECT_EQ(bench.counters.lost_timer + bench.counters.lost_inferred, losses);
  EXPECT_EQ(bench.counters.silences, 10u);
  EXPECT_EQ(bench.requestor.paths().bad(), 0u);
}

TEST(RequestorPath, TimeoutWhileThePeerAnswersDeclaresTheOldestPacketLost) {
  RequestorBench bench;
  bench.post(3 * 1024);
  const auto packets = bench.poll_all();
  bench.pass(kRtt);
  bench.acknowledge(packets[1]);
  // The peer answers now and then, but acknowledges nothing new.
  const wire::Sack nothing_new = bench.sack({.psn = bench.cack(), .sent = {}});
  while (bench.counters.timeouts == 0) {
    bench.take_sack(nothing_new);
    ASSERT_EQ(bench.to_deadline(), Status::kOk);
    test::take_all(bench.control);
  }
  EXPECT_EQ(bench.counters.lost_timer, 1u);
  EXPECT_EQ(bench.counters.silences, 0u);
  const auto again = bench.poll_all();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].psn(), packets[0].psn());
}

TEST(RequestorPath, RetransmissionTakesAnotherPlane) {
  RequestorBench bench;
  std::map<std::uint32_t, PortIndex> lost_on;
  int again = 0;
  const auto sent = Flow(bench).send(400, [&](const Out& out) {
    const auto before = lost_on.find(out.psn().value());
    if (before != lost_on.end()) {
      ++again;
      EXPECT_NE(out.outgoing.ev.port, before->second) << out.psn().value();
      return false;
    }
    if (out.psn().value() % 40 != 0) return false;
    lost_on[out.psn().value()] = out.outgoing.ev.port;
    return true;
  });
  EXPECT_GE(again, 5);
}

}  // namespace
}  // namespace weft::transport
