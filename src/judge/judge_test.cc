#include "judge/judge.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/prng.h"
#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

TEST(Judge, HasNoComplaintAboutALongCorrectRun) {
  TraceBuilder run({.mpr_window = 1024});
  std::vector<TraceBuilder::Message> messages;
  for (std::uint64_t id = 0; id < 300; ++id) {
    messages.push_back({.id = id,
                        .length = id * 37,
                        .with_immediate = id % 3 == 0,
                        .immediate = static_cast<std::uint32_t>(id * 5),
                        .signalled = id % 7 != 1});
    run.transfer(messages.back());
  }
  run.end(messages);
  EXPECT_EQ(run.broken(), "");
}

TEST(Judge, RecordsMayBeReadOneByOne) {
  TraceBuilder run;
  run.transfer({.id = 1});
  run.end({{.id = 1}});
  Judge judge;
  for (const TraceRecord& record : run.records()) judge.read(record);
  EXPECT_TRUE(judge.finish().empty());
}

TEST(Judge, ATraceWithoutAnEndOrWithTimeRunningBackwardsIsReported) {
  TraceBuilder run;
  EXPECT_EQ(run.broken(), "trace");
  run.end();
  EXPECT_EQ(run.broken(), "");
  run.records()[1].at = run.records()[1].at + Duration::us(1);
  EXPECT_EQ(run.broken(), "trace");
  run.records()[1].at = run.records()[0].at;
  run.add(TraceKind::kHealed, 0);
  EXPECT_EQ(run.broken(), "trace");
  run.records().clear();
  run.end();
  run.records()[0].at = Time::from_start(Duration::ps(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(run.broken(), "trace");
}

TEST(Judge, RecordsAboutUnknownQpsAreReported) {
  for (const TraceKind kind : {TraceKind::kPost, TraceKind::kComplete, TraceKind::kWindow,
                               TraceKind::kEv, TraceKind::kQpError, TraceKind::kQpGone}) {
    TraceBuilder run;
    run.add(kind, 7);
    run.end();
    EXPECT_EQ(run.broken(), "trace");
  }
}

TEST(Judge, QpRecordsThatContradictEachOtherAreReported) {
  TraceBuilder no_mtu;
  no_mtu.records()[0].c = 0;
  EXPECT_EQ(no_mtu.broken(), "trace");
  TraceBuilder disagree;
  disagree.end();
  disagree.records()[1].ev += 1;
  EXPECT_EQ(disagree.broken(), "trace");
  TraceBuilder twice;
  twice.records().push_back(twice.records()[1]);
  twice.records().back().at = twice.records()[2].at;
  twice.end();
  EXPECT_EQ(twice.broken(), "trace");
}

TEST(Judge, ACrashedHostThatSendsIsReported) {
  TraceBuilder run;
  run.post({.id = 1});
  run.add(TraceKind::kHostDown, TraceBuilder::kRequestor);
  run.send(0);
  run.end();
  EXPECT_EQ(run.broken(), "trace");
}

TEST(Judge, AQpnMayBeReusedAfterItsQpIsGone) {
  TraceBuilder run;
  run.transfer({.id = 1});
  run.add(TraceKind::kQpGone, 0);
  run.add(TraceKind::kQpGone, 1);
  for (const std::size_t i : {0u, 1u, 2u}) {
    TraceRecord again = run.records()[i];
    again.at = run.records().back().at;
    run.records().push_back(again);
  }
  const std::size_t before = run.records().size();
  TraceBuilder second;
  second.transfer({.id = 1});
  for (std::size_t i = 3; i < second.records().size(); ++i) {
    run.records().push_back(second.records()[i]);
  }
  for (std::size_t i = before; i < run.records().size(); ++i) {
    run.records()[i].at = run.records()[before - 1].at;
  }
  run.end({{.id = 1}, {.id = 1}});
  EXPECT_EQ(run.broken(), "");
}

TEST(Judge, KeepsAFewComplaintsPerRuleAndCountsAll) {
  TraceBuilder run;
  for (int i = 0; i < 100; ++i) run.complete(9);
  for (int i = 0; i < 100; ++i) run.add(TraceKind::kPost, 7);
  Judge judge({.complaints_max = 12, .complaints_per_rule_max = 8});
  judge.read(run.records());
  EXPECT_EQ(judge.finish().size(), 12u);
  EXPECT_EQ(judge.complaint_count(), 201u);
}

TEST(Judge, AComplaintPrintsAsOneLine) {
  TraceBuilder run;
  run.complete(9);
  run.end();
  EXPECT_EQ(to_string(run.judge()[0]),
            "0.004000 us, host 0, qp 0x000011: completion: a completion for 9, which is not posted"
            " or completed before");
}

// Random changes to a correct trace: the judge must neither crash nor hang.
TEST(Judge, RandomlyChangedTracesDoNotCrashIt) {
  TraceBuilder good;
  for (std::uint64_t id = 1; id < 20; ++id) {
    good.transfer({.id = id, .length = id * 500, .with_immediate = id % 2 == 0});
  }
  good.end();
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Prng prng(seed);
    std::vector<TraceRecord> records = good.records();
    for (int i = 0; i < 40; ++i) {
      TraceRecord& r = records[prng.below(static_cast<std::uint32_t>(records.size()))];
      const std::uint64_t value = prng.next() >> prng.below(64);
      switch (prng.below(10)) {
        case 0:
          r.kind = static_cast<TraceKind>(prng.below(17));
          break;
        case 1:
          r.qpn = static_cast<std::uint32_t>(value);
          break;
        case 2:
          r.peer = static_cast<std::uint32_t>(value);
          break;
        case 3:
          r.psn = static_cast<std::uint32_t>(value);
          break;
        case 4:
          r.a = value;
          break;
        case 5:
          r.b = value;
          break;
        case 6:
          r.c = static_cast<std::uint32_t>(value);
          break;
        case 7:
          r.header_size = static_cast<std::uint8_t>(value);
          break;
        case 8:
          r.header[prng.below(48)] = static_cast<std::byte>(value);
          break;
        default:
          std::swap(r, records[prng.below(static_cast<std::uint32_t>(records.size()))]);
      }
    }
    Judge judge({.packets_max = 1 + prng.below(50)});
    judge.read(records);
    judge.finish();
  }
}

}  // namespace
}  // namespace weft::judge
