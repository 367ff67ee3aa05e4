#include "transport/answer_scheduler.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::transport {
namespace {

constexpr Duration kDelay = Duration::us(250), kQuiet = Duration::us(300);

Time at(std::int64_t us) { return Time::from_start(Duration::us(us)); }

// A scheduler with four QPs; their peers are software unless a test says otherwise.
struct Bench {
  explicit Bench(Duration delay) : answers({.delay = delay, .qp_count_max = 4}) {}

  bool data(Time now, std::uint32_t index = 0) {
    return answers.on_data(now, index, qps[index], true);
  }
  bool data_of_a_nic(Time now, std::uint32_t index) {
    return answers.on_data(now, index, qps[index], false);
  }
  // Sends the prompt answers. Returns the indices of the QPs in order.
  std::vector<std::uint32_t> answer_prompt() {
    const std::vector<std::uint32_t> all(answers.prompt().begin(), answers.prompt().end());
    for (const std::uint32_t index : all) answers.on_prompt_answered(qps[index]);
    answers.on_all_prompt_answered();
    return all;
  }
  std::vector<std::uint32_t> answer_delayed(Time now) {
    const std::vector<std::uint32_t> all(answers.delayed().begin(), answers.delayed().end());
    for (const std::uint32_t index : all) answers.on_delayed_answered(now, qps[index]);
    answers.on_all_delayed_answered();
    return all;
  }
  // Data comes, and its answer waits for the whole delay. Returns when the answer left.
  Time delay_one(Time now) {
    data(now);
    answers.on_data_sent(now);
    answer_delayed(now + kDelay);
    return now + kDelay;
  }
  // The QPs whose quiet reports are due. `owes_sack` holds for all of them.
  std::vector<std::uint32_t> quiet(Time now, bool owes_sack = true) {
    std::vector<std::uint32_t> due;
    for (std::size_t left = answers.begin_quiet_round(); left > 0; --left) {
      const std::uint32_t index = answers.take_watched();
      if (answers.is_quiet(now, index, qps[index], {.owes_sack = owes_sack, .quiet = kQuiet}))
        due.push_back(index);
    }
    return due;
  }

  AnswerScheduler answers;
  std::array<AnswerScheduler::OfQp, 4> qps;
};

using Indices = std::vector<std::uint32_t>;

TEST(AnswerScheduler, NothingIsDueBeforeDataIsReceived) {
  Bench bench(kDelay);
  EXPECT_FALSE(bench.answers.is_due(at(1)));
  EXPECT_EQ(bench.answers.answer_at(), kNever);
  EXPECT_EQ(bench.answers.quiet_at(), kNever);
}

TEST(AnswerScheduler, QpsAreAnsweredOnceInTheOrderTheirDataCame) {
  Bench bench({});
  EXPECT_TRUE(bench.data(at(1), 2));
  EXPECT_TRUE(bench.data(at(1), 0));
  EXPECT_FALSE(bench.data(at(1), 2));
  EXPECT_EQ(bench.answer_prompt(), (Indices{2, 0}));
  EXPECT_TRUE(bench.answers.prompt().empty());
  EXPECT_TRUE(bench.data(at(2), 2));
}

TEST(AnswerScheduler, AnswersToANicAreNeverDelayed) {
  Bench bench(kDelay);
  bench.data(at(1), 0);
  for (int i = 0; i < 20; ++i) bench.data_of_a_nic(at(1), 1);
  bench.answers.on_data_sent(at(1));
  EXPECT_FALSE(bench.answers.is_due(at(1)));  // packets of a NIC do not end the delay of other QPs
  EXPECT_EQ(bench.answer_prompt(), Indices{1});
  EXPECT_EQ(bench.answer_delayed(at(251)), Indices{0});
}

TEST(AnswerScheduler, AnswersAreDueAtOnceUnlessDataIsSent) {
  Bench bench(kDelay);
  bench.data(at(1));
  EXPECT_TRUE(bench.answers.is_due(at(1)));
  bench.answers.on_data_sent(at(1));
  EXPECT_FALSE(bench.answers.is_due(at(1)));
}

TEST(AnswerScheduler, TheDelayBeginsWithTheFirstDataSent) {
  Bench bench(kDelay);
  bench.data(at(100));
  bench.answers.on_data_sent(at(100));
  bench.answers.on_data_sent(at(200));
  EXPECT_EQ(bench.answers.answer_at(), at(350));
  EXPECT_FALSE(bench.answers.is_due(at(349)));
  EXPECT_TRUE(bench.answers.is_due(at(350)));
  bench.answer_delayed(at(350));
  EXPECT_EQ(bench.answers.answer_at(), kNever);
}

TEST(AnswerScheduler, SixteenUnansweredPacketsEndTheDelay) {
  Bench bench(kDelay);
  bench.data(at(1));
  bench.answers.on_data_sent(at(1));
  for (int i = 1; i < 15; ++i) bench.data(at(1));
  EXPECT_FALSE(bench.answers.is_due(at(1)));
  bench.data(at(1), 1);  // packets of all QPs count
  EXPECT_TRUE(bench.answers.is_due(at(1)));
}

TEST(AnswerScheduler, PeerBlockedOnTwoDelayedAnswersInARowIsAnsweredAtOnce) {
  Bench bench(kDelay);
  Time answered = bench.delay_one(at(1000));
  answered = bench.delay_one(answered + Duration::us(20));  // blocked once: may be chance
  const Time now = answered + Duration::us(20);
  bench.data(now);  // blocked twice in a row
  bench.answers.on_data_sent(now);
  EXPECT_TRUE(bench.answers.is_due(now));
  bench.answer_delayed(now);
  // The answers are prompt for 50 ms. Then new proof is needed.
  const Time still = now + Duration::ms(50) - Duration::us(1);
  bench.data(still);
  bench.answers.on_data_sent(still);
  EXPECT_TRUE(bench.answers.is_due(still));
  bench.answer_delayed(still);
  bench.data(now + Duration::ms(50));
  bench.answers.on_data_sent(now + Duration::ms(50));
  EXPECT_FALSE(bench.answers.is_due(now + Duration::ms(50)));
}

TEST(AnswerScheduler, OneBlockedAnswerAfterAPauseIsNoProof) {
  Bench bench(kDelay);
  Time answered = bench.delay_one(at(1000));
  answered = bench.delay_one(answered + Duration::us(20));  // blocked once
  answered = bench.delay_one(answered + Duration::ms(10));  // not blocked
  const Time now = answered + Duration::us(20);
  bench.data(now);  // blocked once: the count began anew
  bench.answers.on_data_sent(now);
  EXPECT_FALSE(bench.answers.is_due(now));
}

TEST(AnswerScheduler, PeerThatSendsDuringTheDelayIsNotBlocked) {
  Bench bench(kDelay);
  Time now = at(1000);
  for (int i = 0; i < 10; ++i) {
    bench.data(now);
    bench.answers.on_data_sent(now);
    bench.data(now + Duration::us(200));  // in the second half of the delay
    EXPECT_FALSE(bench.answers.is_due(now + Duration::us(200))) << i;
    bench.answer_delayed(now + kDelay);
    now += kDelay + Duration::us(20);
  }
}

TEST(AnswerScheduler, AnswersThatLeaveEarlyResetTheCountOfBlockedAnswers) {
  Bench bench(kDelay);
  Time answered = bench.delay_one(at(1000));
  const Time early = answered + Duration::us(20);
  bench.data(early);  // blocked once
  bench.answers.on_data_sent(early);
  bench.answer_delayed(early + Duration::us(1));
  answered = bench.delay_one(early + Duration::ms(1));
  bench.data(answered + Duration::us(20));  // blocked once: the count began anew
  bench.answers.on_data_sent(answered + Duration::us(20));
  EXPECT_FALSE(bench.answers.is_due(answered + Duration::us(20)));
}

TEST(AnswerScheduler, QuietDataIsReportedOnce) {
  Bench bench({});
  bench.data(at(100), 3);
  bench.answers.watch(at(100), 3, bench.qps[3], kQuiet);
  EXPECT_EQ(bench.answers.quiet_at(), at(400));
  EXPECT_EQ(bench.quiet(at(400)), Indices{3});
  EXPECT_EQ(bench.answers.quiet_at(), kNever);
  EXPECT_TRUE(bench.quiet(at(800)).empty());
}

TEST(AnswerScheduler, DataThatKeepsComingIsNotQuiet) {
  Bench bench({});
  for (const std::int64_t us : {100, 250}) {
    bench.data(at(us), 1);
    bench.answers.watch(at(us), 1, bench.qps[1], kQuiet);
  }
  EXPECT_EQ(bench.answers.quiet_at(), at(400));
  EXPECT_TRUE(bench.quiet(at(400)).empty());
  EXPECT_EQ(bench.answers.quiet_at(), at(550));
  EXPECT_EQ(bench.quiet(at(550)), Indices{1});
}

TEST(AnswerScheduler, QpThatOwesNoSackIsNoLongerWatched) {
  Bench bench({});
  bench.data(at(100), 1);
  bench.answers.watch(at(100), 1, bench.qps[1], kQuiet);
  EXPECT_TRUE(bench.quiet(at(400), false).empty());
  EXPECT_EQ(bench.answers.quiet_at(), kNever);
  bench.answers.watch(at(500), 1, bench.qps[1], kQuiet);  // it may be watched again
  EXPECT_EQ(bench.answers.quiet_at(), at(800));
}

TEST(AnswerScheduler, NothingIsWatchedWithoutAQuietTime) {
  Bench bench({});
  bench.answers.watch(at(1), 0, bench.qps[0], Duration());
  EXPECT_EQ(bench.answers.quiet_at(), kNever);
  EXPECT_EQ(bench.answers.begin_quiet_round(), 0u);
}

TEST(AnswerScheduler, DestroyedQpIsInNoList) {
  Bench bench({});
  for (std::uint32_t index = 0; index < 3; ++index) {
    bench.data(at(1), index);
    bench.answers.watch(at(1), index, bench.qps[index], kQuiet);
  }
  bench.answers.forget(1);
  bench.qps[1] = {};
  EXPECT_EQ(bench.answer_prompt(), (Indices{0, 2}));
  EXPECT_EQ(bench.quiet(at(301)), (Indices{0, 2}));
}

}  // namespace
}  // namespace weft::transport
