#include "transport/ev_prober.h"

#include <gtest/gtest.h>

#include <map>

#include "transport/test_memory.h"

namespace weft::transport {
namespace {

constexpr fabric::Ev kEv{.value = 0x0100'0001, .port = 1};

class Bench {
 public:
  explicit Bench(std::uint32_t watched_max = 16) : prober(watched_max) {}

  Time at(std::int64_t us) const { return Time::from_start(Duration::us(us)); }
  void queue_questions(Time now) {
    prober.ask(now, control, ids_, [this](std::uint32_t) { return answer_time; });
  }
  // The probes that are due at that time.
  std::vector<test::Sent> ask(Time now) {
    queue_questions(now);
    return test::take_all(control);
  }
  EvProber prober;
  ControlQueue control{256};
  Duration answer_time;  // of all peers

 private:
  RequestIds ids_;
};

std::uint16_t id_of(const test::Sent& sent) {
  return static_cast<std::uint16_t>(sent.packet.bth.psn.value());
}

TEST(EvProber, EvIsProbedOnItselfAMillisecondLater) {
  Bench bench;
  EXPECT_EQ(bench.prober.next_deadline(), kNever);
  EXPECT_TRUE(bench.prober.watch(bench.at(0), 7, kEv, false));
  EXPECT_EQ(bench.prober.watched(), 1u);
  EXPECT_EQ(bench.prober.next_deadline(), bench.at(1000));
  EXPECT_TRUE(bench.ask(bench.at(999)).empty());
  const auto asked = bench.ask(bench.at(1000));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].control.peer, 7u);
  EXPECT_EQ(asked[0].control.port, PortChoice::only(1));
  EXPECT_TRUE(asked[0].control.fixed_ev);
  EXPECT_EQ(asked[0].control.entropy, kEv.value);
  const auto* request = std::get_if<wire::EndpointRequest>(&asked[0].packet.body);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->op, wire::EndpointOp::kEvProbe);
  EXPECT_EQ(asked[0].packet.bth.dest_qpn, wire::kEndpointQpn);
  EXPECT_GT(bench.prober.next_deadline(), bench.at(1000));
}

// Answers each probe after 10 us until the EV is revived. Returns the number of answers.
int answers_to_revive(Bench& bench, Time& now) {
  for (int answers = 1; answers < 50; ++answers) {
    now = bench.prober.next_deadline();
    const auto asked = bench.ask(now);
    EXPECT_EQ(asked.size(), 1u);
    now += Duration::us(10);
    const auto* watch = bench.prober.on_answer(now, 7, id_of(asked[0]));
    if (watch == nullptr) return -1;
    if (!watch->active) return answers;
  }
  return -1;
}

TEST(EvProber, ThreeAnswersReviveAnEvAndTwiceAsManyAfterEachFailureSoonAfter) {
  Bench bench;
  Time now;
  for (int needed : {3, 6, 12, 12}) {
    ASSERT_TRUE(bench.prober.watch(now, 7, kEv, false));
    EXPECT_EQ(answers_to_revive(bench, now), needed);
    EXPECT_EQ(bench.prober.watched(), 0u);
    EXPECT_EQ(bench.prober.next_deadline(), kNever);
    now += Duration::ms(100);
  }
  now += Duration::s(1);  // the earlier failure is forgotten
  ASSERT_TRUE(bench.prober.watch(now, 7, kEv, false));
  EXPECT_EQ(answers_to_revive(bench, now), 3);
}

TEST(EvProber, UnansweredProbeRestartsTheCount) {
  Bench bench;
  Time now;
  ASSERT_TRUE(bench.prober.watch(now, 7, kEv, false));
  for (int i = 0; i < 2; ++i) {
    now = bench.prober.next_deadline();
    ASSERT_NE(bench.prober.on_answer(now, 7, id_of(bench.ask(now)[0])), nullptr);
  }
  now = bench.prober.next_deadline();
  bench.ask(now);  // the probe is lost
  EXPECT_EQ(answers_to_revive(bench, now), 3);
}

// Probes whenever due, over a path with that RTT that loses every `lost_every`-th probe. Returns
// when the EV was revived, or kNever.
Time revived_at(Bench& bench, Duration rtt, int lost_every = 1000) {
  std::multimap<Time, std::uint16_t> answers;
  int count = 0;
  for (Time now = bench.at(0); now < bench.at(2'000'000);) {
    for (const auto& sent : bench.ask(now)) {
      if (++count % lost_every != 0) answers.emplace(now + rtt, id_of(sent));
    }
    while (!answers.empty() && answers.begin()->first <= now) {
      const auto* watch = bench.prober.on_answer(now, 7, answers.begin()->second);
      if (watch != nullptr && !watch->active) return now;
      answers.erase(answers.begin());
    }
    now = bench.prober.next_deadline();
    if (!answers.empty()) now = std::min(now, answers.begin()->first);
  }
  return kNever;
}

TEST(EvProber, LateAnswersCount) {
  for (const int ms : {2, 6, 12, 30, 45, 70, 120}) {
    Bench bench;
    bench.answer_time = Duration::ms(ms);
    ASSERT_TRUE(bench.prober.watch(Time(), 7, kEv, false));
    // Two more probes after the first, and the answer to the last.
    EXPECT_LE(revived_at(bench, Duration::ms(ms)), bench.at(1000 * (ms + 3 + 2 * ms / 4)));
    EXPECT_LE(bench.prober.probes_queued(), 2 * EvProber::kUnderWayMax);
  }
}

TEST(EvProber, LostAnswerAmongLateOnesRestartsTheCount) {
  for (const int lost_every : {3, 4}) {
    Bench bench;
    bench.answer_time = Duration::ms(6);
    ASSERT_TRUE(bench.prober.watch(Time(), 7, kEv, false));
    // Every third probe is lost: never three answers in a row.
    EXPECT_EQ(revived_at(bench, Duration::ms(6), lost_every) == kNever, lost_every == 3);
  }
}

TEST(EvProber, DeadEvIsProbedOftenHoweverLateAnswersWere) {
  Bench bench;
  bench.answer_time = Duration::s(10);
  ASSERT_TRUE(bench.prober.watch(Time(), 7, kEv, false));
  Time now;
  for (int i = 0; i < 100; ++i) {
    const Time next = bench.prober.next_deadline();
    EXPECT_LE(next - now, Duration::ms(16));
    now = next;
    ASSERT_EQ(bench.ask(now).size(), 1u);
  }
}

TEST(EvProber, OnlyAnswersToItsOwnProbesFromItsPeerCount) {
  Bench bench;
  ASSERT_TRUE(bench.prober.watch(Time(), 7, kEv, false));
  EXPECT_EQ(bench.prober.on_answer(bench.at(1), 7, 0), nullptr);
  const std::uint16_t id = id_of(bench.ask(bench.at(1000))[0]);
  EXPECT_EQ(bench.prober.on_answer(bench.at(1010), 8, id), nullptr);  // another peer
  EXPECT_EQ(bench.prober.on_answer(bench.at(1010), 7, static_cast<std::uint16_t>(id + 1)), nullptr);
  EXPECT_NE(bench.prober.on_answer(bench.at(1010), 7, id), nullptr);
  EXPECT_EQ(bench.prober.on_answer(bench.at(1020), 7, id), nullptr);  // the same answer twice
}

TEST(EvProber, ManyBadEvsShareTheProbeBudget) {
  Bench bench(500);
  for (std::uint32_t i = 0; i < 200; ++i)
    ASSERT_TRUE(bench.prober.watch(Time(), 7, {.value = i, .port = 0}, false));
  std::map<std::uint32_t, int> asked;
  int total = 0;
  for (Time now = bench.prober.next_deadline(); now <= bench.at(1'000'000);
       now = std::max(bench.prober.next_deadline(), now + Duration::us(1))) {
    for (const auto& sent : bench.ask(now)) {
      ++asked[sent.control.entropy];
      ++total;
    }
  }
  EXPECT_LE(total, 1300);  // 1,000 a second, and the first round
  EXPECT_EQ(asked.size(), 200u);
}

TEST(EvProber, FullTableRefusesUnlessOneOfItsEvsIsRevived) {
  Bench bench(2);
  EXPECT_TRUE(bench.prober.watch(Time(), 1, {.value = 1}, false));
  EXPECT_TRUE(bench.prober.watch(Time(), 1, {.value = 2}, false));
  EXPECT_FALSE(bench.prober.watch(Time(), 1, {.value = 3}, false));
  EXPECT_TRUE(bench.prober.watch(Time(), 1, {.value = 2}, false));  // this EV is watched already
  EXPECT_EQ(bench.prober.watched(), 2u);
  // One EV is revived: its record gives way to a new watch.
  for (int i = 0; i < 3; ++i) {
    const Time now = bench.prober.next_deadline();
    for (const auto& sent : bench.ask(now)) {
      if (sent.control.entropy == 1) bench.prober.on_answer(now, 1, id_of(sent));
    }
    while (bench.prober.watched() == 2 && bench.prober.next_deadline() < now + Duration::ms(1)) {
      bench.ask(bench.prober.next_deadline());
    }
  }
  EXPECT_EQ(bench.prober.watched(), 1u);
  EXPECT_TRUE(bench.prober.watch(bench.at(10'000), 1, {.value = 3}, false));
  EXPECT_FALSE(bench.prober.watch(bench.at(10'000), 1, {.value = 4}, false));
}

TEST(EvProber, FullQueueDelaysTheProbe) {
  Bench bench;
  ASSERT_TRUE(bench.prober.watch(Time(), 7, kEv, false));
  while (bench.control.add() != nullptr) {
  }
  bench.queue_questions(bench.at(1000));
  EXPECT_EQ(bench.prober.probes_queued(), 0u);
  EXPECT_GT(bench.prober.next_deadline(), bench.at(1000));
  while (!bench.control.empty()) bench.control.pop();
  EXPECT_EQ(bench.ask(bench.prober.next_deadline()).size(), 1u);
}

TEST(EvProber, FullQueueDropsNoProbeInFlight) {
  Bench bench;
  ASSERT_TRUE(bench.prober.watch(Time(), 7, kEv, false));
  const std::uint16_t id = id_of(bench.ask(bench.at(1000))[0]);
  while (bench.control.add() != nullptr) {
  }
  bench.queue_questions(bench.prober.next_deadline());
  EXPECT_NE(bench.prober.on_answer(bench.at(2100), 7, id), nullptr);
}

TEST(EvProber, PlaneIsRevivedByAnswersOfItsWatchedEvsTogether) {
  Bench bench;
  for (std::uint32_t i = 0; i < 3; ++i)
    ASSERT_TRUE(bench.prober.watch(Time(), 7, {.value = i + 1, .port = 1}, true));
  ASSERT_TRUE(bench.prober.watch(Time(), 7, {.value = 9, .port = 0}, false));
  const auto asked = bench.ask(bench.at(1000));
  ASSERT_EQ(asked.size(), 4u);
  const EvProber::Watch* watch = nullptr;
  for (int i = 0; i < 3; ++i)
    watch = bench.prober.on_answer(bench.at(1010), 7, id_of(asked[static_cast<std::size_t>(i)]));
  ASSERT_NE(watch, nullptr);
  EXPECT_TRUE(watch->plane);
  EXPECT_FALSE(watch->active);
  EXPECT_EQ(bench.prober.watched(), 1u);  // only the EV of the other plane is left
}

TEST(EvProber, RevivedPlaneDoesNotReviveAnEvCondemnedAlone) {
  Bench bench;
  const fabric::Ev alone{.value = 1, .port = 1}, witness{.value = 2, .port = 1};
  ASSERT_TRUE(bench.prober.watch(Time(), 7, alone, false));
  ASSERT_TRUE(bench.prober.watch(Time(), 7, alone, true));
  ASSERT_TRUE(bench.prober.watch(Time(), 7, witness, true));
  // An EV watched for the plane answers; the EV condemned by itself does not.
  const EvProber::Watch* watch = nullptr;
  Time now;
  for (int i = 0; i < 20 && (watch == nullptr || watch->active); ++i) {
    now = bench.prober.next_deadline();
    for (const auto& sent : bench.ask(now)) {
      if (sent.control.entropy == witness.value)
        watch = bench.prober.on_answer(now, 7, id_of(sent));
    }
  }
  ASSERT_NE(watch, nullptr);
  EXPECT_EQ(watch->ev, witness);
  EXPECT_FALSE(watch->active);
  ASSERT_EQ(bench.prober.watched(), 1u);
  EXPECT_EQ(answers_to_revive(bench, now), 3);
  EXPECT_EQ(bench.prober.watched(), 0u);
}

TEST(EvProber, NewWatchIsReportedOnce) {
  Bench bench;
  EXPECT_FALSE(bench.prober.take_new());
  ASSERT_TRUE(bench.prober.watch(Time(), 7, kEv, false));
  EXPECT_TRUE(bench.prober.take_new());
  EXPECT_FALSE(bench.prober.take_new());
  ASSERT_TRUE(bench.prober.watch(Time(), 7, kEv, false));
  EXPECT_FALSE(bench.prober.take_new());
}

}  // namespace
}  // namespace weft::transport
