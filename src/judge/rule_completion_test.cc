#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

using Message = TraceBuilder::Message;
const Message kOne{.id = 1}, kTwo{.id = 2};

// Two messages of one packet each, on the wire and acknowledged, not completed.
TraceBuilder two_acknowledged() {
  TraceBuilder run;
  run.post(kOne);
  run.post(kTwo);
  run.send_and_arrive(0);
  run.send_and_arrive(1);
  run.acknowledge(1);
  return run;
}

TEST(RuleCompletion, NoComplaintIfEachPostCompletesOnceInOrder) {
  TraceBuilder run = two_acknowledged();
  run.complete(1);
  run.complete(2);
  run.end({kOne, kTwo});
  EXPECT_EQ(run.broken(), "");
}

TEST(RuleCompletion, CompletionOutOfOrderIsReported) {
  TraceBuilder run = two_acknowledged();
  run.complete(2);
  run.complete(1);
  run.end({kOne, kTwo});
  EXPECT_EQ(run.broken(), "completion");
  EXPECT_EQ(run.judge()[0].text, "post 2 completed before post 1, which is older");
  EXPECT_EQ(run.judge().size(), 1u);
}

TEST(RuleCompletion, SecondCompletionOfAPostIsReported) {
  TraceBuilder run = two_acknowledged();
  run.complete(1);
  run.complete(1);
  run.complete(2);
  run.end({kOne, kTwo});
  EXPECT_EQ(run.broken(), "completion");
  EXPECT_EQ(run.judge()[0].text, "post 1 completed a second time");
}

TEST(RuleCompletion, CompletionOfAnUnknownPostIsReported) {
  TraceBuilder run;
  run.complete(9);
  run.end();
  EXPECT_EQ(run.broken(), "completion");
}

TEST(RuleCompletion, CompletionBeforeTheTransportAckIsReported) {
  TraceBuilder run;
  run.post(kOne);
  run.send_and_arrive(0);
  run.arrive(run.sack(0));
  run.complete(1);
  run.arrive(run.transport_ack(0));
  run.window(0);
  run.end({kOne});
  EXPECT_EQ(run.broken(), "completion");
}

TEST(RuleCompletion, CompletionOfAnUnsignalledPostIsReported) {
  TraceBuilder good;
  good.transfer({.id = 1, .signalled = false});
  good.transfer({.id = 2});
  good.end({kOne, kTwo});
  EXPECT_EQ(good.broken(), "");

  TraceBuilder bad;
  bad.transfer({.id = 1, .signalled = false});
  bad.complete(1);
  bad.end({kOne});
  EXPECT_EQ(bad.broken(), "completion");
}

TEST(RuleCompletion, AnErrorMustFlushEachRemainingPostAndReceiveOnce) {
  const auto run_with = [](auto completions) {
    TraceBuilder run = two_acknowledged();
    run.post_recv(7);
    run.complete(1);
    run.error(TraceBuilder::kRequestor);
    run.error(TraceBuilder::kResponder);
    completions(run);
    run.end({kOne});
    return run.broken({.errors_expected = true});
  };
  const auto flush_receive = [](TraceBuilder& run) {
    TraceRecord& r = run.deliver(7, {});
    r.a = 5;
  };
  EXPECT_EQ(run_with([&](TraceBuilder& run) {
              run.complete(2, 5);
              flush_receive(run);
            }),
            "");
  EXPECT_EQ(run_with([&](TraceBuilder& run) { flush_receive(run); }), "completion");
  EXPECT_EQ(run_with([&](TraceBuilder& run) { run.complete(2, 5); }), "completion");
  EXPECT_EQ(run_with([&](TraceBuilder& run) {
              run.complete(2, 5);
              run.complete(2, 5);
              flush_receive(run);
            }),
            "completion");
}

TEST(RuleCompletion, SuccessAfterAnErrorIsReported) {
  TraceBuilder run = two_acknowledged();
  run.error(TraceBuilder::kRequestor);
  run.complete(1, 5);
  run.complete(2);
  run.end({kTwo});
  EXPECT_EQ(run.broken({.errors_expected = true}), "completion");
}

TEST(RuleCompletion, ErrorCompletionWithoutAQpErrorIsReported) {
  TraceBuilder run = two_acknowledged();
  run.complete(1, 5);
  run.complete(2, 5);
  run.end();
  EXPECT_EQ(run.broken(), "completion");
}

TEST(RuleCompletion, ReceivesMustCompleteInTheOrderOfPosting) {
  const Message imm{.id = 1, .with_immediate = true, .immediate = 4};
  const auto run_with = [&](std::uint64_t receive) {
    TraceBuilder run;
    run.post_recv(7);
    run.post_recv(8);
    run.post(imm);
    run.send_and_arrive(0);
    run.deliver(receive, imm);
    run.acknowledge(0);
    run.complete(1);
    run.end({imm});
    return run.broken();
  };
  EXPECT_EQ(run_with(7), "");
  EXPECT_EQ(run_with(8), "completion");
  EXPECT_EQ(run_with(9), "completion");
}

TEST(RuleCompletion, ReceivesMayBePostedBeforeTheQpIsReady) {
  const Message imm{.id = 1, .with_immediate = true, .immediate = 4};
  TraceBuilder run;
  run.transfer(imm);
  run.end({imm});
  std::vector<TraceRecord>& records = run.records();
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].kind != TraceKind::kPostRecv) continue;
    TraceRecord early = records[i];
    early.at = Time();
    records.erase(records.begin() + static_cast<std::ptrdiff_t>(i));
    records.insert(records.begin(), early);
    break;
  }
  EXPECT_EQ(run.broken(), "");
}

}  // namespace
}  // namespace weft::judge
