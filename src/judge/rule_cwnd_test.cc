#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

constexpr std::int64_t kPacket = TraceBuilder::kNominal;
constexpr std::uint64_t kTwoPackets = 2 * kPacket;

TraceBuilder start(std::uint64_t cwnd) {
  TraceBuilder run({.cwnd = cwnd});
  run.post({.id = 1, .length = 10 * TraceBuilder::kMtu});
  return run;
}

std::string broken(TraceBuilder& run, const Options& options = {}) {
  run.add(TraceKind::kEnd, 0);
  return run.broken(options);
}

TEST(RuleCwnd, DataMayFillTheWindowExactly) {
  TraceBuilder run = start(kTwoPackets);
  run.send(0);
  run.send(1);
  EXPECT_EQ(broken(run), "");
}

TEST(RuleCwnd, OneByteBeyondTheWindowIsReported) {
  TraceBuilder run = start(kTwoPackets - 1);
  run.send(0);
  run.send(1);
  EXPECT_EQ(broken(run), "cwnd");
  run.records().pop_back();
  EXPECT_EQ(broken(run, {.cwnd_tolerance_bytes = 1}), "");
}

TEST(RuleCwnd, ARetransmissionCountsAsInFlight) {
  TraceBuilder run = start(kTwoPackets);
  run.send(0);
  run.send(1);
  run.send(0, {.rtx = true});
  EXPECT_EQ(broken(run), "cwnd");
}

TEST(RuleCwnd, APacketIsAlwaysAllowedWhenNothingIsInFlight) {
  TraceBuilder run = start(10);
  run.send(0);
  EXPECT_EQ(broken(run), "");
  run.records().pop_back();
  run.window(-200);
  run.send(1);
  EXPECT_EQ(broken(run), "");
  run.records().pop_back();
  run.send(2);
  EXPECT_EQ(broken(run), "cwnd");
}

TEST(RuleCwnd, ARetransmissionOfAcknowledgedDataIsNotCounted) {
  TraceBuilder run = start(kTwoPackets);
  run.send_and_arrive(0);
  run.arrive(run.sack(0));
  run.window(0);
  run.send(1);
  run.send(2);
  run.send(0, {.rtx = true});
  EXPECT_EQ(broken(run), "");
}

TEST(RuleCwnd, DataBeforeTheFirstWindowRecordIsReported) {
  TraceBuilder run;
  run.records().pop_back();
  run.post({.id = 1});
  run.send(0);
  EXPECT_EQ(broken(run), "cwnd");
}

TEST(RuleInflight, NonzeroInflightAtTheEndIsReported) {
  const auto run_with = [](std::int64_t inflight) {
    TraceBuilder run;
    run.transfer({.id = 1});
    run.window(inflight);
    run.end({{.id = 1}});
    return run.broken();
  };
  EXPECT_EQ(run_with(0), "");
  EXPECT_EQ(run_with(256), "inflight");
  EXPECT_EQ(run_with(-1), "inflight");
}

}  // namespace
}  // namespace weft::judge
