#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

TEST(RuleError, AQpErrorIsReportedUnlessThePeerCrashed) {
  TraceBuilder bad;
  bad.error(TraceBuilder::kRequestor);
  bad.error(TraceBuilder::kResponder);  // follows from the first error: not reported
  bad.end();
  EXPECT_EQ(bad.broken(), "error");
  EXPECT_EQ(bad.judge().size(), 1u);
  EXPECT_EQ(bad.broken({.errors_expected = true}), "");

  TraceBuilder good;
  good.add(TraceKind::kHostDown, TraceBuilder::kResponder);
  good.error(TraceBuilder::kRequestor);
  good.end();
  EXPECT_EQ(good.broken(), "");
}

TEST(RuleError, DataFromAFailedOrDestroyedQpIsReported) {
  for (const TraceKind kind : {TraceKind::kQpError, TraceKind::kQpGone}) {
    TraceBuilder run;
    run.post({.id = 1, .signalled = false});
    run.add(kind, TraceBuilder::kRequestor);
    run.send(0);
    run.end();
    EXPECT_EQ(run.broken({.errors_expected = true}), "error");
  }
}

}  // namespace
}  // namespace weft::judge
