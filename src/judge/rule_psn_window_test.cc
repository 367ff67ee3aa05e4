#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

// A long message; the first `count` packets are sent and arrive. The window is 128 PSNs.
TraceBuilder sent(std::int64_t count) {
  TraceBuilder run;
  run.post({.id = 1, .length = 400 * TraceBuilder::kMtu});
  for (std::int64_t i = 0; i < count; ++i) run.send_and_arrive(i);
  return run;
}

std::string broken(TraceBuilder& run, const Options& options = {}) {
  run.add(TraceKind::kEnd, 0);
  return run.broken(options);
}

TEST(RulePsnWindow, NewDataBeyondTheWindowIsReported) {
  TraceBuilder good = sent(128);
  EXPECT_EQ(broken(good), "");
  TraceBuilder bad = sent(129);
  EXPECT_EQ(broken(bad), "psn-window");
  EXPECT_EQ(broken(bad, {.psn_window_tolerance = 1}), "trace");  // broken() wrote a second kEnd
}

TEST(RulePsnWindow, TheWindowMovesOnlyWithSacksThatArrived) {
  TraceBuilder run = sent(128);
  run.sack(9);
  run.send(128);  // the SACK was sent but has not arrived
  EXPECT_EQ(broken(run), "psn-window");

  TraceBuilder known = sent(128);
  known.arrive(known.sack(9));
  for (int i = 128; i < 138; ++i) known.send(i);
  EXPECT_EQ(broken(known), "");

  TraceBuilder beyond = sent(128);
  beyond.arrive(beyond.sack(9));
  for (int i = 128; i < 139; ++i) beyond.send(i);
  EXPECT_EQ(broken(beyond), "psn-window");
}

TEST(RulePsnWindow, AChangedMprNeverMovesTheEndOfTheWindowBack) {
  const auto run_with = [](std::uint8_t mpr, std::int64_t last) {
    TraceBuilder run = sent(128);
    run.arrive(run.sack(9, [&](wire::Sack& s) { s.mpr = mpr; }));
    for (std::int64_t i = 128; i <= last; ++i) run.send(i);
    return broken(run);
  };
  EXPECT_EQ(run_with(2, 10 + 255), "");
  EXPECT_EQ(run_with(2, 10 + 256), "psn-window");

  TraceBuilder run = sent(128);
  run.arrive(run.sack(9, [](wire::Sack& s) { s.mpr = 2; }));   // allows up to 265
  run.arrive(run.sack(19, [](wire::Sack& s) { s.mpr = 1; }));  // alone it would allow up to 147
  for (int i = 128; i <= 265; ++i) run.send(i);
  EXPECT_EQ(broken(run), "");
  run.records().pop_back();
  run.send(266);
  EXPECT_EQ(broken(run), "psn-window");
}

TEST(RulePsnWindow, RetransmissionsAreAlwaysInsideTheWindow) {
  TraceBuilder run = sent(128);
  run.send(127, {.rtx = true});
  EXPECT_EQ(broken(run), "");
}

}  // namespace
}  // namespace weft::judge
