#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

std::string data_on(EvTraceState state, bool rtx) {
  TraceBuilder run;
  run.post({.id = 1, .length = 2048});
  run.send_and_arrive(0);
  run.ev_state(5, EvTraceState::kDenied);
  run.ev_state(5, state);
  run.send(rtx ? 0 : 1, {.rtx = rtx, .ev = 5});
  run.add(TraceKind::kEnd, 0);
  return run.broken();
}

TEST(RuleEv, DataOnAnAssumedBadOrDeniedEvIsReported) {
  for (const bool rtx : {false, true}) {
    EXPECT_EQ(data_on(EvTraceState::kGood, rtx), "");
    EXPECT_EQ(data_on(EvTraceState::kSkip, rtx), "");
    EXPECT_EQ(data_on(EvTraceState::kAssumedBad, rtx), "ev");
    EXPECT_EQ(data_on(EvTraceState::kDenied, rtx), "ev");
  }
}

TEST(RuleEv, OtherEvsOtherPortsAndControlPacketsAreAllowed) {
  TraceBuilder run;
  run.post({.id = 1});
  run.ev_state(5, EvTraceState::kDenied);
  run.add(TraceKind::kEv, TraceBuilder::kRequestor, [](TraceRecord& r) {
    r.ev = 6;
    r.port = 1;
    r.a = static_cast<std::uint64_t>(EvTraceState::kDenied);
  });
  run.send_and_arrive(0, {.ev = 6});
  run.sack(0).ev = 5;
  run.add(TraceKind::kEnd, 0);
  EXPECT_EQ(run.broken(), "");
}

}  // namespace
}  // namespace weft::judge
