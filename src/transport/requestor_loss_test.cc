// Lost packets: when they are declared lost, what follows, and that inflight stays correct:
// docs/decisions/0002.
#include <gtest/gtest.h>

#include <deque>

#include "base/prng.h"
#include "transport/requestor.h"
#include "transport/test_requestor.h"

namespace weft::transport {
namespace {

using test::RequestorBench;
using wire::NackReason;
using Out = RequestorBench::Out;

constexpr Duration kRtt = Duration::us(10);

// Sends one packet per microsecond.
std::vector<Out> send_spaced(RequestorBench& bench, std::uint32_t count) {
  bench.post(count * 1024);
  std::vector<Out> packets;
  for (std::uint32_t i = 0; i < count; ++i) {
    packets.push_back(*bench.poll());
    bench.pass(Duration::us(1));
  }
  return packets;
}

TEST(RequestorLoss, PacketIsLostOnlyAfterTheReorderWindow) {
  RequestorBench bench;
  const Time start = bench.now;
  const auto packets = send_spaced(bench, 9);
  for (std::int64_t i = 0; i < 9; ++i) {
    if (i == 2) continue;
    bench.now = start + kRtt + Duration::us(i);
    ASSERT_TRUE(bench.acknowledge(packets[static_cast<std::size_t>(i)]));
    // A quarter of the RTT is 2.5 us: packet 2, sent at microsecond 2, is lost when packet 5 is
    // known to have arrived.
    EXPECT_EQ(bench.requestor.window().lost(), i >= 5 ? 1u : 0u) << i;
  }
  EXPECT_EQ(bench.counters.lost_inferred, 1u);
  const auto again = bench.poll_all();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].psn(), packets[2].psn());
}

TEST(RequestorLoss, RetransmissionIsTheSamePacketOnAnotherEv) {
  RequestorBench bench;
  const Time start = bench.now;
  const auto packets = send_spaced(bench, 9);
  for (std::size_t i : {0u, 1u, 3u, 4u, 5u, 6u, 7u, 8u}) {
    bench.now = start + kRtt + Duration::us(static_cast<std::int64_t>(i));
    bench.acknowledge(packets[i]);
  }
  const auto again = bench.poll();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->psn(), packets[2].psn());
  EXPECT_TRUE(again->packet.bth.rtx);
  EXPECT_TRUE(again->packet.bth.ack_request);
  EXPECT_EQ(again->outgoing.dscp, world::Dscp::kTrimmableRetx);
  EXPECT_EQ(again->packet.bth.opcode, packets[2].packet.bth.opcode);
  EXPECT_EQ(again->write().va, packets[2].write().va);
  EXPECT_EQ(again->outgoing.payload.at, packets[2].outgoing.payload.at);
  EXPECT_EQ(again->outgoing.payload.size, packets[2].outgoing.payload.size);
  EXPECT_NE(again->outgoing.ev, packets[2].outgoing.ev);
  EXPECT_EQ(again->write().sent, timestamp(bench.now));
  EXPECT_EQ(bench.counters.retransmits.sum(), 1u);
}

TEST(RequestorLoss, PartialKnowledgeDeclaresLostOnlyWhatTheSackShowsMissing) {
  RequestorBench bench;
  const auto packets = send_spaced(bench, 150);
  // The responder has packets 1..60 and 100..149. The SACK covers only 86..149, so the requestor
  // knows nothing about 1..85.
  for (std::size_t i = 1; i <= 60; ++i) bench.arrive(packets[i]);
  for (std::size_t i = 100; i < 150; ++i) bench.arrive(packets[i]);
  const wire::Sack sack = bench.sack(RequestorBench::trigger(packets[149]));
  ASSERT_EQ(sack.ooo_count, 110);
  EXPECT_TRUE(bench.take_sack(sack));
  EXPECT_EQ(bench.requestor.window().received_above_cack(), 50u);
  // Lost: 0, the PSN after the cumulative PSN, and 86..99, whose bits are clear. Nothing is known
  // about 1..85.
  EXPECT_EQ(bench.requestor.window().lost(), 15u);
  EXPECT_EQ(bench.requestor.window().outstanding(), 85u);
  // The requestor probes for the rest.
  const auto probes = test::only<wire::Probe>(test::take_all(bench.control));
  ASSERT_EQ(probes.size(), 1u);
  // The answer makes the knowledge complete.
  bench.pass(kRtt);
  wire::Sack answer = bench.sack({.psn = packets[63].psn(), .sent = {}});
  answer.answers_probe = true;
  answer.probe_id = probes[0].probe_id;
  EXPECT_TRUE(bench.take_sack(answer));
  EXPECT_EQ(bench.requestor.window().received_above_cack(), 110u);
  EXPECT_EQ(bench.requestor.window().lost(), 40u);
  EXPECT_EQ(bench.requestor.window().outstanding(), 0u);
}

TEST(RequestorLoss, ProbeCountsAsAPacketSentWhenTheProbeWas) {
  RequestorBench bench;
  const auto packets = send_spaced(bench, 3);
  // None of the packets arrives. The answer to the tail probe proves them lost.
  ASSERT_EQ(bench.to_deadline(), Status::kOk);
  while (test::only<wire::Probe>(test::take_all(bench.control)).empty()) {
    ASSERT_EQ(bench.to_deadline(), Status::kOk);
  }
  bench.pass(kRtt);
  wire::Sack answer = bench.sack({.psn = bench.cack(), .sent = {}});
  answer.answers_probe = true;
  answer.probe_id = 0;
  EXPECT_TRUE(bench.take_sack(answer));
  EXPECT_EQ(bench.requestor.window().lost(), 3u);
  EXPECT_EQ(bench.counters.timeouts, 0u);
}

TEST(RequestorLoss, EachNackReasonHasItsEffect) {
  struct Case {
    NackReason reason;
    bool at_once, skips;
  };
  const Case cases[] = {
      {NackReason::kTrimmed, true, true},           {NackReason::kTrimmedLastHop, true, false},
      {NackReason::kNoBitmap, false, false},        {NackReason::kNoPacketBuffer, false, false},
      {NackReason::kNoResource, false, false},      {NackReason::kPsnOutOfWindow, false, false},
      {static_cast<NackReason>(0x55), false, false}};
  for (const Case& c : cases) {
    SCOPED_TRACE(static_cast<int>(c.reason));
    RequestorBench bench;
    const auto packets = send_spaced(bench, 4);
    const std::int64_t before = bench.inflight();
    const auto slot = bench.requestor.paths().find(packets[1].outgoing.ev);
    bench.pass(kRtt);
    EXPECT_EQ(bench.nack(packets[1], c.reason), Status::kOk);
    EXPECT_EQ(bench.requestor.window().lost(), 1u);
    EXPECT_EQ(before - bench.inflight(), RequestorBench::nominal(packets[1]));
    EXPECT_EQ(bench.requestor.paths().state(slot), c.skips ? EvState::kSkip : EvState::kGood);
    EXPECT_EQ(bench.requestor.paths().bad(), 0u);
    // The retransmission goes as soon as the window allows it, before new packets.
    bench.acknowledge(packets[0]);
    auto again = bench.poll();
    EXPECT_EQ(again.has_value(), c.at_once);
    if (!c.at_once) {
      const Time refused_at = bench.now;
      while (!again && bench.now < refused_at + kRtt) {
        ASSERT_EQ(bench.to_deadline(), Status::kOk);
        again = bench.poll();
      }
      EXPECT_EQ((bench.now - refused_at).ns(), kRtt.ns());
    }
    ASSERT_TRUE(again);
    EXPECT_EQ(again->psn(), packets[1].psn());
    const auto probes = test::only<wire::Probe>(test::take_all(bench.control));
    EXPECT_GE(probes.size(), c.reason == NackReason::kPsnOutOfWindow ? 1u : 0u);
    EXPECT_EQ(bench.counters.lost_trimmed, c.at_once ? 1u : 0u);
    EXPECT_EQ(bench.counters.nacks_resource + bench.counters.nacks_window, c.at_once ? 0u : 1u);
  }
}

TEST(RequestorLoss, UnexpectedEventIsFatal) {
  RequestorBench bench;
  const auto packets = send_spaced(bench, 1);
  EXPECT_EQ(bench.nack(packets[0], NackReason::kUnexpectedEvent), Status::kRemoteOperation);
}

TEST(RequestorLoss, NackOfAnOldCopyChangesNothing) {
  RequestorBench bench;
  const auto packets = send_spaced(bench, 4);
  bench.pass(kRtt);
  bench.nack(packets[1], NackReason::kTrimmedLastHop);
  bench.acknowledge(packets[3]);
  const auto second = bench.poll();
  ASSERT_TRUE(second);
  const std::int64_t inflight = bench.inflight(), window = bench.requestor.congestion().window();
  bench.pass(Duration::us(1));
  for (NackReason reason : {NackReason::kTrimmedLastHop, NackReason::kNoResource}) {
    EXPECT_EQ(bench.nack(packets[1], reason), Status::kOk);
  }
  EXPECT_EQ(bench.requestor.window().lost(), 0u);
  EXPECT_EQ(bench.inflight(), inflight);
  EXPECT_EQ(bench.requestor.congestion().window(), window);
  EXPECT_EQ(bench.counters.stale, 2u);
  // A second NACK of the same copy, or one of an acknowledged PSN, changes nothing either.
  bench.nack(*second, NackReason::kTrimmedLastHop);
  const std::int64_t after = bench.inflight();
  bench.nack(*second, NackReason::kTrimmedLastHop);
  EXPECT_EQ(bench.inflight(), after);
  bench.acknowledge(packets[0]);
  const std::int64_t then = bench.inflight();
  bench.nack(packets[0], NackReason::kTrimmedLastHop);
  EXPECT_EQ(bench.inflight(), then);
}

TEST(RequestorLoss, SpuriousLossIsNotRetransmittedAndInflightStaysCorrect) {
  RequestorBench bench;
  const auto packets = send_spaced(bench, 10);
  bench.pass(kRtt);
  for (std::size_t i = 1; i < 10; ++i) bench.arrive(packets[i]);
  bench.take_sack(bench.sack(RequestorBench::trigger(packets[9])));
  EXPECT_EQ(bench.requestor.window().lost(), 1u);
  bench.acknowledge(packets[0]);
  EXPECT_EQ(bench.requestor.window().lost(), 0u);
  EXPECT_FALSE(bench.poll());
  EXPECT_EQ(bench.counters.spurious, 1u);
  EXPECT_EQ(bench.counters.retransmits.sum(), 0u);
  EXPECT_EQ(bench.inflight(), 0);
  EXPECT_EQ(bench.counters.unbalanced, 0u);
}

// Software ends with a round trip of 10 us, where packets may come late.
RequestorBench::Options software_ends() {
  auto options = RequestorBench::defaults();
  options.config.peer = PeerKind::kSoftware;
  return options;
}
struct LeftOut {
  std::vector<Out> packets;  // those that were not acknowledged
  Duration found_after;      // from sending the first of them until it was declared lost
};
// Sends `count` packets, one per microsecond, and acknowledges each a round trip later, except
// `left_out` packets from the third on. Copies are sent when they are due, and are not acknowledged
// either.
LeftOut leave_out(RequestorBench& bench, std::uint32_t count, std::uint32_t left_out = 1) {
  LeftOut result;
  const Time start = bench.now;
  const std::uint64_t before = bench.counters.lost_inferred;
  bench.post(count * 1024);
  std::vector<Out> packets;
  const auto way = static_cast<std::uint32_t>(kRtt.us());
  for (std::uint32_t us = 0; us < count + way; ++us) {
    bench.now = start + Duration::us(us);
    while (packets.size() < std::min(count, us + 1)) {
      const auto out = bench.poll();
      if (!out) break;
      if (!out->packet.bth.rtx) packets.push_back(*out);
    }
    if (us < way || us - way >= packets.size()) continue;
    const std::uint32_t heard = us - way;
    if (heard >= 2 && heard < 2 + left_out) {
      result.packets.push_back(packets[heard]);
    } else {
      bench.acknowledge(packets[heard]);
    }
    if (result.found_after == Duration() && bench.counters.lost_inferred > before)
      result.found_after = bench.now - start - Duration::us(2);
  }
  while (bench.poll()) {
  }
  return result;
}
// Time within which the requestor knows that no packet is late.
constexpr Duration kSoon = Duration::us(40);

// The retransmitted copy overwrote the send time in the record. The SACK carries the old copy's own
// time.
TEST(RequestorLoss, LateFirstCopyShowsHowLatePacketsOfSoftwareAre) {
  for (const bool software : {true, false}) {
    RequestorBench bench(software ? software_ends() : RequestorBench::defaults());
    const LeftOut late = leave_out(bench, 45);
    ASSERT_GT(late.found_after, Duration());
    EXPECT_LE(late.found_after, kSoon);
    bench.pass(Duration::us(20));
    bench.acknowledge(late.packets[0]);  // the packet took 72 us
    ASSERT_EQ(bench.counters.spurious, 0u);
    const LeftOut again = leave_out(bench, 45);
    if (software) {
      EXPECT_EQ(again.found_after, Duration()) << "it was not taken for lost";
    } else {
      EXPECT_EQ(again.found_after, late.found_after);
    }
    bench.acknowledge(again.packets[0]);
    EXPECT_GT(leave_out(bench, 300).found_after, Duration());
  }
}

// SACKs that acknowledge nothing new are copies of the same SACK, or forged.
TEST(RequestorLoss, SacksThatAcknowledgeNothingNewShowNoLateness) {
  RequestorBench bench(software_ends());
  bench.post(1024);
  const auto packet = bench.poll();
  bench.pass(kRtt);
  bench.acknowledge(*packet);
  for (int i = 0; i < 100; ++i) {
    bench.pass(Duration::us(60));
    wire::Sack sack = bench.sack(RequestorBench::trigger(*packet));
    sack.trigger_offset = static_cast<std::int16_t>(-i * 10);
    bench.take_sack(sack);
  }
  EXPECT_LE(leave_out(bench, 200).found_after, kSoon);
}

// The same for a packet that was retransmitted and then acknowledged. An earlier packet is missing,
// so that the record stays.
TEST(RequestorLoss, RetransmittedPacketShowsLatenessOnce) {
  RequestorBench bench(software_ends());
  const LeftOut missing = leave_out(bench, 45, 2);
  ASSERT_GE(bench.counters.retransmits.sum(), 2u);
  bench.acknowledge(missing.packets[1]);
  const Duration before = bench.peers[0].answers.value();
  EXPECT_GT(before, kSoon) << "that time it told";
  for (int i = 0; i < 100; ++i) {
    bench.pass(Duration::us(60));
    bench.take_sack(bench.sack(RequestorBench::trigger(missing.packets[1])));
  }
  EXPECT_LE(bench.peers[0].answers.value(), before);
}

// `missing` packets are declared lost although they arrived. One SACK says so, `soon` after their
// copies were sent. Returns how long after sending they were declared lost.
Duration mistake(RequestorBench& bench, std::uint32_t missing, Duration soon) {
  bench.post(40 * 1024);
  const Time start = bench.now;
  const auto packets = bench.poll_all();
  EXPECT_EQ(packets.size(), 40u);
  bench.pass(kRtt);
  bench.acknowledge(packets[0]);
  for (std::size_t i = 1 + missing; i < packets.size(); ++i) bench.arrive(packets[i]);
  const std::uint64_t before = bench.counters.lost_inferred;
  while (bench.counters.lost_inferred == before) {
    bench.pass(kRtt * 10);
    bench.post(1024);
    const auto later = bench.poll();
    if (!later) {
      ADD_FAILURE() << "nothing goes";
      break;
    }
    bench.pass(kRtt);
    bench.acknowledge(*later);
  }
  const Duration found_after = bench.now - start;
  while (bench.poll()) {  // sends the copies
  }
  for (std::size_t i = 1; i <= missing; ++i) bench.arrive(packets[i]);
  bench.pass(soon);
  bench.acknowledge(packets.back());
  bench.transport_ack(bench.cack());
  bench.completions();
  return found_after;
}

TEST(RequestorLoss, AcknowledgementSoonerThanAnyRttShowsASpuriousLoss) {
  for (const auto& [after, spurious] : {std::pair{kRtt / 2, 3u}, {kRtt * 2, 0u}}) {
    RequestorBench bench(software_ends());
    mistake(bench, 3, after);
    EXPECT_EQ(bench.counters.lost_inferred, 3u);
    EXPECT_EQ(bench.counters.spurious, spurious);
  }
}

TEST(RequestorLoss, SoftwareLearnsOnceFromABurstOfSpuriousLosses) {
  RequestorBench once(software_ends());
  mistake(once, 15, kRtt / 2);
  ASSERT_EQ(once.counters.spurious, 15u);
  const Duration after_one = leave_out(once, 200).found_after;
  RequestorBench single(software_ends());
  mistake(single, 1, kRtt / 2);
  EXPECT_EQ(after_one, leave_out(single, 200).found_after);
  RequestorBench often(software_ends());
  for (int i = 0; i < 15; ++i) mistake(often, 1, kRtt / 2);
  ASSERT_EQ(often.counters.spurious, 15u);
  EXPECT_EQ(leave_out(often, 200).found_after, Duration()) << "not even after 200 us";
}

// A dead plane must be left within 10 ms, however often packets of a live plane were late.
TEST(RequestorLoss, SpuriousLossesExtendTheReorderWindowByAtMostFourMilliseconds) {
  RequestorBench bench(software_ends());
  for (int i = 0; i < 70; ++i) mistake(bench, 1, kRtt / 2);
  const Duration found_after = mistake(bench, 1, kRtt / 2);
  EXPECT_GE(found_after, Duration::us(3500));
  EXPECT_LE(found_after, Duration::us(4500));
}

// A plane that stands still for less time than packets were late before is not dead.
TEST(RequestorLoss, PlaneIsCondemnedLaterWherePacketsAreLate) {
  for (const bool late : {false, true}) {
    auto options = software_ends();
    options.confirm = Duration::ms(1);
    RequestorBench bench(options);
    for (const Duration took : {kRtt, late ? Duration::ms(6) : kRtt}) {
      bench.post(1024);
      const auto out = bench.poll();
      bench.pass(took);
      bench.acknowledge(*out);
    }
    const Time start = bench.now;
    std::deque<Out> under_way;
    Time judged = kNever;
    while (bench.now - start < Duration::ms(30) && judged == kNever) {
      bench.post(2 * 1024);
      while (auto out = bench.poll()) {
        if (out->outgoing.ev.port == 1) under_way.push_back(*out);
      }
      bench.pass(Duration::us(50));
      for (; !under_way.empty(); under_way.pop_front()) bench.acknowledge(under_way.front());
      bench.transport_ack(bench.cack());
      bench.completions();
      if (bench.counters.planes_condemned.sum() + bench.counters.evs_condemned.sum() > 0)
        judged = bench.now;
    }
    ASSERT_NE(judged, kNever);
    EXPECT_EQ(judged - start > Duration::ms(3), late) << (judged - start).us();
    EXPECT_LE(judged - start, Duration::ms(20));
  }
}

TEST(RequestorLoss, DeadPortLosesWhatIsInFlightOnItAndBlamesNoEv) {
  RequestorBench bench;
  const auto packets = send_spaced(bench, 20);
  const std::int64_t window = bench.requestor.congestion().window();
  std::uint32_t on_it = 0;
  for (const Out& out : packets) on_it += out.outgoing.ev.port == 1;
  bench.port_lost(1);
  EXPECT_EQ(bench.requestor.window().lost(), on_it);
  EXPECT_EQ(bench.counters.lost_port, on_it);
  EXPECT_EQ(bench.requestor.paths().bad(), 0u);
  EXPECT_EQ(bench.requestor.congestion().window(), window);
  const auto again = bench.poll_all(0b01);
  ASSERT_EQ(again.size(), on_it);
  for (const Out& out : again) EXPECT_EQ(out.outgoing.ev.port, 0);
}

// Packets are lost, trimmed, duplicated and late: everything completes in order, and inflight ends
// at 0.
TEST(RequestorLoss, InflightEndsAtZeroUnderLossTrimsAndReordering) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    auto options = RequestorBench::defaults();
    options.first = Psn(0xff'ff80 + prng.below(256));
    options.config.nscc.trimming = prng.below(2) == 0;
    options.burst = 1 + prng.below(4);
    RequestorBench bench(options);
    const std::uint32_t loss = prng.below(20), trim = prng.below(20), deaf = prng.below(30);
    struct Feedback {
      Out out;
      bool trimmed;
      wire::Sack sack;
    };
    std::deque<Feedback> feedback;
    std::uint32_t posted = 0, done = 0;
    for (int step = 0; step < 20'000 && done < 24; ++step) {
      if (posted < 24 && !bench.requestor.is_full()) {
        bench.post(prng.below(40'000), prng.below(3) == 0);
        ++posted;
      }
      for (const Out& out : bench.poll_all()) {
        if (prng.below(100) < loss) continue;
        const bool trimmed = prng.below(100) < trim;
        for (std::uint32_t copy = 0; copy <= (prng.below(32) == 0 ? 1u : 0u); ++copy) {
          if (!trimmed) bench.arrive(out);
          feedback.push_back(
              {.out = out, .trimmed = trimmed, .sack = bench.sack(RequestorBench::trigger(out))});
        }
      }
      bench.pass(Duration::us(1 + prng.below(8)));
      for (const wire::Probe& probe : test::only<wire::Probe>(test::take_all(bench.control))) {
        // The bitmap covers a random part of the window: a real responder's SACKs walk through it.
        wire::Sack answer = bench.sack(
            {.psn = bench.cack() + static_cast<std::int32_t>(prng.below(256)), .sent = {}});
        answer.answers_probe = true;
        answer.probe_id = probe.probe_id;
        bench.take_sack(answer);
        bench.transport_ack(bench.cack());
      }
      for (std::uint32_t n = 1 + prng.below(8); n > 0 && !feedback.empty(); --n) {
        const std::size_t at =
            prng.below(static_cast<std::uint32_t>(std::min<std::size_t>(4, feedback.size())));
        const Feedback f = feedback[at];
        feedback.erase(feedback.begin() + static_cast<std::ptrdiff_t>(at));
        if (prng.below(100) < deaf) continue;
        if (f.trimmed) {
          bench.nack(f.out, NackReason::kTrimmed);
        } else {
          bench.take_sack(f.sack, f.out.packet.bth.rtx);
          bench.transport_ack(f.sack.cack);
        }
      }
      const Time deadline = bench.requestor.deadline();
      const bool quiet = feedback.empty() && bench.control.empty();
      if (deadline != kNever && (bench.now >= deadline || quiet)) {
        ASSERT_EQ(bench.to_deadline(), Status::kOk);
      }
      for (const Completion& c : bench.completions()) {
        ASSERT_EQ(c.id, ++done);
        ASSERT_EQ(c.status, Status::kOk);
      }
    }
    EXPECT_EQ(done, 24u);
    EXPECT_EQ(bench.inflight(), 0);
    EXPECT_EQ(bench.counters.unbalanced, 0u);
    EXPECT_EQ(bench.pool.in_use(), 0u);
  }
}

}  // namespace
}  // namespace weft::transport
