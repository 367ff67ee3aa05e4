// Deadlines: asking for lost Transport ACKs, retries, and the end of retries. Reference section
// 6.2, docs/decisions/0005.
#include <gtest/gtest.h>

#include "transport/requestor.h"
#include "transport/test_requestor.h"

namespace weft::transport {
namespace {

using test::RequestorBench;
using Out = RequestorBench::Out;

constexpr Duration kRtt = Duration::us(10);

TEST(RequestorTime, TailTimerRequestsALostTransportAck) {
  RequestorBench bench;
  bench.post(3 * 1024);
  bench.post(1024);
  const auto packets = bench.poll_all();
  bench.pass(kRtt);
  bench.acknowledge(packets);
  ASSERT_TRUE(bench.completions().empty());
  const std::uint32_t active = bench.requestor.paths().active();
  for (int round = 0; round < 5; ++round) {
    EXPECT_LE(bench.requestor.deadline() - bench.now, kRtt * 5);
    ASSERT_EQ(bench.to_deadline(), Status::kOk);
    const auto again = bench.poll_all();
    ASSERT_EQ(again.size(), 1u) << round;
    // The last packet of the oldest write that is not done.
    EXPECT_EQ(again[0].psn(), packets[2].psn());
    EXPECT_TRUE(again[0].packet.bth.rtx);
    EXPECT_TRUE(again[0].packet.bth.ack_request);
    EXPECT_EQ(again[0].write().va, packets[2].write().va);
    EXPECT_EQ(bench.inflight(), 0);
  }
  EXPECT_EQ(bench.counters.completion_resends, 5u);
  EXPECT_EQ(bench.requestor.paths().active(), active);
  bench.transport_ack(packets[2].psn());
  EXPECT_EQ(bench.completions().size(), 1u);
  ASSERT_EQ(bench.to_deadline(), Status::kOk);
  ASSERT_EQ(bench.poll_all().size(), 1u);
  bench.transport_ack(packets[3].psn());
  EXPECT_EQ(bench.completions().size(), 1u);
  EXPECT_EQ(bench.requestor.deadline(), kNever);
  EXPECT_FALSE(bench.requestor.has_work());
}

TEST(RequestorTime, RetryTimerProbesAfterTheTailTimerAndThenGivesUp) {
  auto options = RequestorBench::defaults();
  options.config.retry = {.timeout = 10, .linear_count = 2, .exponential_count = 2};
  RequestorBench bench(options);
  bench.post(1024);
  const auto packets = bench.poll_all();
  bench.pass(kRtt);
  bench.acknowledge(packets);
  Status status = Status::kOk;
  std::size_t asked = 0;
  for (int i = 0; i < 1000 && status == Status::kOk; ++i) {
    status = bench.to_deadline();
    asked += bench.poll_all().size();
  }
  EXPECT_EQ(status, Status::kRetryExceeded);
  EXPECT_EQ(bench.counters.timeouts, 5u);
  EXPECT_GT(asked, 16u);
}

// The times at which the retry timer expires when the peer never answers.
std::vector<Duration> expiries(RequestorBench& bench, std::size_t count_max) {
  bench.post(1024);
  bench.poll_all();
  const Time start = bench.now;
  std::vector<Duration> all;
  for (int i = 0; i < 10'000 && all.size() < count_max; ++i) {
    const std::uint64_t before = bench.counters.timeouts;
    const Status status = bench.to_deadline();
    if (bench.counters.timeouts != before) all.push_back(bench.now - start);
    bench.poll_all();
    bench.control = ControlQueue(64);
    if (status == Status::kOk) continue;
    EXPECT_EQ(status, Status::kRetryExceeded);
    break;
  }
  return all;
}

TEST(RequestorTime, RetriesAreLinearThenDoublingThenEnd) {
  auto options = RequestorBench::defaults();
  options.config.retry = {.timeout = 8, .linear_count = 3, .exponential_count = 4};
  RequestorBench bench(options);
  const auto at = expiries(bench, 100);
  ASSERT_EQ(at.size(), 8u);
  const Duration unit = Duration::ns(1024) * 256;
  const std::int64_t steps[] = {1, 1, 1, 1, 2, 4, 8, 16};
  Duration sum;
  for (std::size_t i = 0; i < 8; ++i) {
    sum += unit * steps[i];
    EXPECT_EQ(at[i].ns(), sum.ns()) << i;
  }
}

TEST(RequestorTime, DefaultConfigurationGivesUpAfterSeventeenSeconds) {
  RequestorBench bench;
  const auto at = expiries(bench, 100);
  ASSERT_EQ(at.size(), 21u);
  EXPECT_GT(at.back(), Duration::s(17));
  EXPECT_LT(at.back(), Duration::s(18));
}

TEST(RequestorTime, RetryCount25NeverGivesUp) {
  auto options = RequestorBench::defaults();
  options.config.retry = {.timeout = 10, .linear_count = 7, .exponential_count = kRetryForever};
  RequestorBench bench(options);
  const auto at = expiries(bench, 300);
  ASSERT_EQ(at.size(), 300u);
  EXPECT_EQ((at[299] - at[298]).ns(), std::int64_t{1024} << 24);
}

TEST(RequestorTime, ProgressResetsTheCountOfExpiries) {
  auto options = RequestorBench::defaults();
  options.config.retry = {.timeout = 10, .linear_count = 2, .exponential_count = 1};
  RequestorBench bench(options);
  bench.post(200 * 1024);
  auto packets = bench.poll_all();
  for (std::size_t i = 0; i < 10; ++i) {
    // Three expiries are allowed. Each time one packet arrives after two.
    const std::uint64_t until = bench.counters.timeouts + 2;
    while (bench.counters.timeouts < until) {
      ASSERT_EQ(bench.to_deadline(), Status::kOk) << i;
      bench.control = ControlQueue(4096);
    }
    bench.acknowledge(packets[i]);
  }
}

TEST(RequestorTime, WorldThatWasLateGivesTimersOneMoreChance) {
  RequestorBench bench;
  bench.post(1024);
  bench.poll_all();
  bench.pass(Duration::ms(50));
  ASSERT_EQ(bench.on_deadline(Duration::ms(50)), Status::kOk);
  EXPECT_EQ(bench.counters.timeouts, 0u);
  EXPECT_TRUE(bench.control.empty());
  EXPECT_GT(bench.requestor.deadline(), bench.now);
  // Only once: retries end also in a world that is always late.
  bench.pass(Duration::ms(50));
  ASSERT_EQ(bench.on_deadline(Duration::ms(50)), Status::kOk);
  EXPECT_EQ(bench.counters.timeouts, 1u);
}

TEST(RequestorTime, ShortLatenessOfTheWorldPostponesNothing) {
  RequestorBench bench;
  bench.post(1024);
  bench.poll_all();
  bench.pass(Duration::ms(2));
  ASSERT_EQ(bench.on_deadline(Duration::us(900)), Status::kOk);
  EXPECT_EQ(bench.counters.timeouts, 1u);
}

// A busy host answers all QPs late, and retransmissions keep it busy.
struct LateSoftwarePeer : testing::Test {
  static RequestorBench::Options options() {
    auto options = RequestorBench::defaults();
    options.config.peer = PeerKind::kSoftware;
    return options;
  }
  static constexpr Duration kLate = Duration::ms(10);

  RequestorBench bench{options()};
};

TEST_F(LateSoftwarePeer, TimersWaitForItOnQpsThatItNeverAnswered) {
  bench.peers[0].answers.on_delay(Duration());
  bench.post(1024);
  bench.poll_all();
  bench.peers[0].answers.on_delay(kLate);  // measured by another QP
  const Time sent = bench.now;
  while (bench.counters.timeouts == 0) ASSERT_EQ(bench.to_deadline(), Status::kOk);
  EXPECT_GE(bench.now - sent, kLate * 2);
  EXPECT_LT(bench.now - sent, kLate * 3);
}

// Before the first answer the peer's queue is not known. An answer to a probe, which overtakes the
// queue, tells nothing about it.
TEST_F(LateSoftwarePeer, TimersWaitLongerBeforeItsFirstAnswer) {
  bench.post(2 * 1024);
  const auto packets = bench.poll_all();
  const Time sent = bench.now;
  while (bench.counters.probes == 0) ASSERT_EQ(bench.to_deadline(), Status::kOk);
  wire::Sack answer = bench.sack(RequestorBench::trigger(packets[0]));
  answer.answers_probe = true;
  answer.probe_id = 0;
  ASSERT_TRUE(bench.take_sack(answer));
  while (bench.counters.timeouts == 0) ASSERT_EQ(bench.to_deadline(), Status::kOk);
  EXPECT_GE(bench.now - sent, Duration::ms(40));
  EXPECT_LT(bench.now - sent, Duration::ms(50));
}

// A round trip of five milliseconds, one packet at a time: the timer is at least that long.
TEST_F(LateSoftwarePeer, TimersWaitLongerOverALongPath) {
  constexpr Duration kWay = Duration::ms(5);
  bench.peers[0].answers.on_delay(kWay);  // measured by another QP; this one has no RTT yet
  for (int i = 0; i < 10; ++i) {
    bench.post(1024);
    const auto packets = bench.poll_all();
    ASSERT_EQ(packets.size(), 1u);
    for (const Time back = bench.now + kWay; bench.now < back;) {
      if (bench.requestor.deadline() < back) {
        ASSERT_EQ(bench.to_deadline(), Status::kOk);
      } else {
        bench.now = back;
      }
    }
    ASSERT_TRUE(bench.acknowledge(packets));
    bench.transport_ack(bench.cack());
  }
  EXPECT_EQ(bench.counters.timeouts, 0u);
  EXPECT_EQ(bench.counters.retransmits.sum(), 0u);
  EXPECT_EQ(bench.counters.spurious, 0u);
}

TEST_F(LateSoftwarePeer, PacketsThatItMayStillAnswerAreNotRetransmitted) {
  bench.peers[0].answers.on_delay(Duration());
  bench.post(1024);
  bench.poll_all();
  while (bench.counters.timeouts == 0) ASSERT_EQ(bench.to_deadline(), Status::kOk);
  bench.peers[0].answers.on_delay(kLate);
  bench.transport_ack(bench.cack());  // an answer, but not the missing one
  EXPECT_TRUE(bench.poll_all().empty());
  bench.pass(kLate * 3);
  while (bench.counters.timeouts == 1) ASSERT_EQ(bench.to_deadline(), Status::kOk);
  bench.transport_ack(bench.cack());
  EXPECT_EQ(bench.poll_all().size(), 1u);
}

// The peer stood still for seconds, once. Timers do not wait that long for later losses.
TEST_F(LateSoftwarePeer, TimersDoNotWaitAsLongAsItsLongestPause) {
  bench.post(1024);
  bench.acknowledge(bench.poll_all());
  bench.peers[0].answers.on_delay(Duration::s(2));
  bench.post(1024);
  const auto packets = bench.poll_all();
  ASSERT_EQ(packets.size(), 1u);
  const Time sent = bench.now;
  while (bench.counters.timeouts == 0) ASSERT_EQ(bench.to_deadline(), Status::kOk);
  bench.transport_ack(bench.cack());  // the peer is alive
  EXPECT_EQ(bench.poll_all().size(), 1u);
  EXPECT_LT(bench.now - sent, Duration::ms(150));
}

TEST_F(LateSoftwarePeer, TimersWaitLessOnceItAnswersQuicklyAgain) {
  bench.post(1024);
  bench.acknowledge(bench.poll_all());
  bench.peers[0].answers.on_delay(kLate);
  bench.post(1024);
  bench.acknowledge(bench.poll_all());
  for (int i = 0; i < 1000; ++i) bench.peers[0].answers.on_delay(Duration());
  bench.post(1024);
  bench.poll_all();
  const Time sent = bench.now;
  while (bench.counters.timeouts == 0) ASSERT_EQ(bench.to_deadline(), Status::kOk);
  EXPECT_LT(bench.now - sent, Duration::ms(2));
}

// The peer answers a probe that was never sent.
TEST_F(LateSoftwarePeer, ForgedAnswersDoNotLengthenTheTimers) {
  bench.post(2 * 1024);
  const auto packets = bench.poll_all();
  bench.arrive(packets[0]);
  for (const std::uint16_t id : std::initializer_list<std::uint16_t>{0, 7, 0xffff, 0xfff8}) {
    wire::Sack answer = bench.sack(RequestorBench::trigger(packets[0]));
    answer.answers_probe = true;
    answer.probe_id = id;
    bench.take_sack(answer);
    EXPECT_EQ(bench.peers[0].answers.value(), Duration()) << id;
  }
}

TEST_F(LateSoftwarePeer, AnswersToProbesShowItsLatenessToo) {
  bench.post(2 * 1024);
  const auto packets = bench.poll_all();
  while (bench.control.empty()) ASSERT_EQ(bench.to_deadline(), Status::kOk);
  const Time asked = bench.now;
  bench.pass(kLate);
  bench.arrive(packets[0]);
  wire::Sack answer = bench.sack(RequestorBench::trigger(packets[0]));
  answer.answers_probe = true;
  answer.probe_id = 0;
  ASSERT_TRUE(bench.take_sack(answer));
  const Duration known = bench.peers[0].answers.value();
  EXPECT_GT(known, (bench.now - asked) / 2);
  EXPECT_LT(known, bench.now - asked);
}

// One of two planes is dead, and the window is full of packets lost there: nothing can be sent
// whose answer would prove the loss (docs/decisions/0032).
TEST_F(LateSoftwarePeer, StuckSenderProbesItAsSoonAsTheAnswerProvesALoss) {
  bench.peers[0].answers.on_delay(kLate);
  for (int i = 0; i < 60; ++i) bench.post(64 * 1024);
  const Time began = bench.now;
  std::vector<Out> packets = bench.poll_all();
  ASSERT_EQ(bench.polled, Requestor::Polled::kWindowClosed);
  while (bench.counters.probes == 0) {
    bench.pass(kRtt / 4);
    ASSERT_LE(bench.now - began, kRtt * 10);
    std::vector<Out> arrived;
    for (const Out& out : packets) {
      if (out.outgoing.ev.port == 1) arrived.push_back(out);
    }
    if (!arrived.empty()) {
      ASSERT_TRUE(bench.acknowledge(arrived));
    }
    ASSERT_EQ(bench.counters.lost_inferred, 0u) << "it was not stuck";
    packets = bench.poll_all();
    if (packets.empty()) {
      ASSERT_EQ(bench.to_deadline(), Status::kOk);
    }
  }
  EXPECT_LE(bench.now - began, kRtt * 5);
  EXPECT_EQ(bench.counters.timeouts, 0u);
  bench.pass(kRtt);
  wire::Sack answer = bench.sack({.psn = bench.cack() + 64, .sent = {}});
  answer.answers_probe = true;
  answer.probe_id = 0;
  ASSERT_TRUE(bench.take_sack(answer));
  EXPECT_GT(bench.counters.lost_inferred, 0u);
  EXPECT_EQ(bench.counters.spurious, 0u);
}

// A packet is missing, and the sender is not blocked: the probe waits for its normal time.
TEST_F(LateSoftwarePeer, SenderThatIsNotStuckDoesNotProbeItSooner) {
  bench.peers[0].answers.on_delay(kLate);
  bench.post(4 * 1024);
  const Time began = bench.now;
  const auto packets = bench.poll_all();
  bench.pass(kRtt);
  ASSERT_TRUE(bench.acknowledge(packets[2]));
  while (bench.counters.probes == 0) ASSERT_EQ(bench.to_deadline(), Status::kOk);
  EXPECT_GE(bench.now - began, kLate);
}

TEST(RequestorTime, NakEndsTheQpWithItsReason) {
  const std::pair<wire::AckSyndrome, Status> cases[] = {
      {wire::AckSyndrome::kNakRemoteAccess, Status::kRemoteAccess},
      {wire::AckSyndrome::kNakInvalidRequest, Status::kRemoteInvalid},
      {wire::AckSyndrome::kNakRemoteOperational, Status::kRemoteOperation}};
  for (const auto& [syndrome, status] : cases) {
    RequestorBench bench;
    bench.post(1024);
    const auto packets = bench.poll_all();
    EXPECT_EQ(bench.transport_ack(packets[0].psn(), syndrome), status);
  }
  // A NAK about a completed write changes nothing.
  RequestorBench bench;
  bench.post(1024);
  auto packets = bench.poll_all();
  bench.pass(kRtt);
  bench.acknowledge(packets);
  bench.transport_ack(packets[0].psn());
  bench.completions();
  EXPECT_EQ(bench.transport_ack(packets[0].psn(), wire::AckSyndrome::kNakRemoteAccess),
            Status::kOk);
}

}  // namespace
}  // namespace weft::transport
