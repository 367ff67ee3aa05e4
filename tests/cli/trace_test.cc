// A trace that `--trace` wrote is read back, and the judge must reach the same verdict.
#include <gtest/gtest.h>

#include "../support/run_file.h"
#include "judge/trace_text.h"

namespace weft::testing {
namespace {

std::string trace_text(const std::string& name, std::uint64_t seed) {
  std::string text;
  run::RunOptions options;
  options.seed = seed;
  options.on_trace = [&](std::span<const TraceRecord> records) {
    for (const TraceRecord& r : records) judge::append_trace_line(r, text);
  };
  const run::Outcome outcome = run(load(name), options);
  EXPECT_TRUE(outcome.held()) << failures(outcome);
  return text;
}

TEST(TraceFile, JudgeReachesTheSameVerdictOnATraceReadBack) {
  for (const char* name : {"first-ack-lost", "tree-16"}) {
    const auto records = judge::parse_trace_text(trace_text(name, 1));
    ASSERT_TRUE(records) << records.error().message;
    ASSERT_GT(records->size(), 100u);
    judge::Judge judge;
    judge.read(*records);
    const auto complaints = judge.finish();
    EXPECT_TRUE(complaints.empty()) << name << ": " << judge::to_string(complaints.front());
  }
}

TEST(TraceFile, EveryRecordOfATraceIsReadBackUnchanged) {
  const std::string text = trace_text("first-nak-lost", 1);
  const auto records = judge::parse_trace_text(text);
  ASSERT_TRUE(records) << records.error().message;
  std::string again;
  for (const TraceRecord& r : *records) judge::append_trace_line(r, again);
  EXPECT_EQ(again, text);
}

}  // namespace
}  // namespace weft::testing
