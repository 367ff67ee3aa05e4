#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

using Message = TraceBuilder::Message;
const Message kOne{.id = 1, .length = 2048, .with_immediate = true, .immediate = 0xa1};
const Message kTwo{.id = 2, .length = 1024, .with_immediate = true, .immediate = 0xa2};
const Message kThree{.id = 3, .length = 1024, .with_immediate = true, .immediate = 0xa3};

// Two posted messages with the packets 0, 1 and 2. No packet is sent yet.
TraceBuilder two_posted() {
  TraceBuilder run;
  run.post_recv(7);
  run.post_recv(8);
  run.post(kOne);
  run.post(kTwo);
  return run;
}

TEST(RuleWimm, NoComplaintIfImmediatesAreDeliveredInOrder) {
  TraceBuilder run = two_posted();
  const TraceRecord first = run.send(0);
  run.send_and_arrive(1);
  run.send_and_arrive(2);
  run.arrive(first);
  run.deliver(7, kOne);
  run.deliver(8, kTwo);
  run.acknowledge(2);
  run.complete(1);
  run.complete(2);
  run.end({kOne, kTwo});
  EXPECT_EQ(run.broken(), "");
}

TEST(RuleWimm, ImmediatesDeliveredOutOfOrderAreReported) {
  TraceBuilder run = two_posted();
  for (int i = 0; i < 3; ++i) run.send_and_arrive(i);
  run.deliver(7, kTwo);
  run.deliver(8, kOne);
  EXPECT_EQ(run.broken(), "wimm-order trace");
}

TEST(RuleWimm, AnImmediateBeforeEarlierDataArrivedIsReported) {
  TraceBuilder run = two_posted();
  run.send_and_arrive(0);
  run.send(1);
  run.send_and_arrive(2);
  run.deliver(7, kOne);
  EXPECT_EQ(run.broken(), "wimm-order trace");
  EXPECT_EQ(run.judge()[0].text,
            "immediate 0xa1 was delivered although PSN 16777215 before its end 16777215 never"
            " arrived");
}

TEST(RuleWimm, TrimmedOrDamagedDataDoesNotCountAsArrived) {
  for (const int flags : {2, 4}) {
    TraceBuilder run = two_posted();
    run.send_and_arrive(0);
    run.arrive(run.send(1), static_cast<std::uint8_t>(flags));
    run.deliver(7, kOne);
    EXPECT_EQ(run.broken(), "wimm-order trace");
  }
}

TEST(RuleWimm, MoreImmediatesThanPostedAreReported) {
  TraceBuilder run = two_posted();
  for (int i = 0; i < 3; ++i) run.send_and_arrive(i);
  run.post_recv(9);
  run.deliver(7, kOne);
  run.deliver(8, kTwo);
  run.deliver(9, kTwo);
  EXPECT_EQ(run.broken(), "wimm-order trace");
}

TEST(RuleWimm, AnImmediateThatIsNeverDeliveredIsReported) {
  TraceBuilder run = two_posted();
  for (int i = 0; i < 3; ++i) run.send_and_arrive(i);
  run.deliver(7, kOne);
  run.acknowledge(2);
  run.complete(1);
  run.complete(2);
  run.end({kOne, kTwo});
  EXPECT_EQ(run.broken(), "wimm-order");
}

TEST(RuleWimm, TheLimitCountsMessagesSentWithoutATransportAck) {
  const auto run_with = [](bool acknowledged) {
    TraceBuilder run = two_posted();  // the limit is 2
    run.post(kThree);
    for (int i = 0; i < 3; ++i) run.send_and_arrive(i);
    if (acknowledged) run.acknowledge(1);
    run.send(3);
    return run.broken();
  };
  EXPECT_EQ(run_with(true), "trace");
  EXPECT_EQ(run_with(false), "wimm-limit trace");
}

}  // namespace
}  // namespace weft::judge
