// Is the judge looking? Traces of good runs in which one thing was changed, and runs in which one
// part is broken on purpose: each must bring the complaint that it deserves. The same runs
// untouched bring none.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "../support/run_file.h"
#include "broken_run.h"
#include "judge/trace_flags.h"
#include "wire/packet.h"

namespace weft::testing {
namespace {

using Records = std::vector<TraceRecord>;
using Predicate = std::function<bool(const TraceRecord&)>;

Records trace_of(const scenario::Scenario& scenario) {
  Records out;
  run::RunOptions options;
  options.baseline = false;
  options.on_trace = [&](std::span<const TraceRecord> records) {
    out.insert(out.end(), records.begin(), records.end());
  };
  const run::Outcome outcome = run(scenario, options);
  EXPECT_TRUE(outcome.held()) << failures(outcome);
  return out;
}

std::vector<judge::Complaint> judged(const Records& records) {
  judge::Judge judge;
  judge.read(records);
  return judge.finish();
}

::testing::AssertionResult complains(const std::vector<judge::Complaint>& complaints,
                                     std::string_view rule) {
  for (const judge::Complaint& c : complaints) {
    if (c.rule == rule) return ::testing::AssertionSuccess();
  }
  auto failure = ::testing::AssertionFailure()
                 << "no complaint under rule " << rule << " but " << complaints.size();
  for (const judge::Complaint& c : complaints) failure << '\n' << judge::to_string(c);
  return failure;
}

Predicate of_kind(TraceKind kind) {
  return [kind](const TraceRecord& r) { return r.kind == kind; };
}
// A completion of a send, or of a receive.
Predicate completion(bool of_receive) {
  return [=](const TraceRecord& r) {
    return r.kind == TraceKind::kComplete && ((r.flags & judge::kFlagReceive) != 0) == of_receive;
  };
}
template <typename Body>
Predicate carries(TraceKind kind) {
  return [kind](const TraceRecord& r) {
    if (r.kind != kind) return false;
    const auto packet = wire::parse(r.header_bytes());
    return packet && std::holds_alternative<Body>(packet->body);
  };
}

// The middle one of those that match: neither the first nor the last of anything.
Records::iterator some(Records& records, const Predicate& predicate) {
  const auto count = std::count_if(records.begin(), records.end(), predicate);
  EXPECT_GT(count, 0);
  auto left = count / 2;
  return std::find_if(records.begin(), records.end(),
                      [&](const TraceRecord& r) { return predicate(r) && left-- == 0; });
}

class TamperedTrace : public ::testing::Test {
 protected:
  // Eight QPs, immediates, everything on one T0 and across.
  static const Records& good() {
    static const Records records = trace_of(load("first-ack-lost"));
    return records;
  }
  Records records_ = good();
};

TEST_F(TamperedTrace, UntouchedIsFine) { EXPECT_TRUE(judged(records_).empty()); }

TEST_F(TamperedTrace, ACompletionIsMissing) {
  records_.erase(some(records_, completion(false)));
  EXPECT_TRUE(complains(judged(records_), "stuck"));
}

TEST_F(TamperedTrace, ACompletionComesTwice) {
  const auto at = some(records_, completion(false));
  records_.insert(at, *at);
  EXPECT_TRUE(complains(judged(records_), "completion"));
}

TEST_F(TamperedTrace, ACompletionComesBeforeItsAck) {
  const TraceRecord completion_record = *some(records_, completion(false));
  const auto is_it = [&](const TraceRecord& r) {
    return r.kind == TraceKind::kComplete && r.host == completion_record.host &&
           r.qpn == completion_record.qpn && r.id == completion_record.id &&
           r.flags == completion_record.flags;
  };
  records_.erase(std::find_if(records_.begin(), records_.end(), is_it));
  const auto posted = std::find_if(records_.begin(), records_.end(), [&](const TraceRecord& r) {
    return r.kind == TraceKind::kPost && r.host == completion_record.host &&
           r.qpn == completion_record.qpn && r.id == completion_record.id;
  });
  TraceRecord early = completion_record;
  early.at = posted->at;
  records_.insert(posted + 1, early);
  EXPECT_TRUE(complains(judged(records_), "completion"));
}

TEST_F(TamperedTrace, AnImmediateIsAnother) {
  some(records_, completion(true))->c ^= 1;
  EXPECT_TRUE(complains(judged(records_), "wimm-order"));
}

TEST_F(TamperedTrace, AnImmediateIsNeverDelivered) {
  records_.erase(some(records_, completion(true)));
  EXPECT_FALSE(judged(records_).empty());
}

TEST_F(TamperedTrace, AByteIsWrong) {
  --some(records_, of_kind(TraceKind::kMemory))->a;
  EXPECT_TRUE(complains(judged(records_), "memory"));
}

TEST_F(TamperedTrace, NobodyLookedAtTheMemory) {
  records_.erase(some(records_, of_kind(TraceKind::kMemory)));
  EXPECT_TRUE(complains(judged(records_), "memory"));
}

TEST_F(TamperedTrace, APacketComesTwice) {
  const auto at = some(records_, carries<wire::Write>(TraceKind::kReceive));
  records_.insert(at, *at);
  EXPECT_TRUE(complains(judged(records_), "conservation"));
}

TEST_F(TamperedTrace, APacketThatIsAcknowledgedNeverCame) {
  records_.erase(some(records_, carries<wire::Write>(TraceKind::kReceive)));
  EXPECT_TRUE(complains(judged(records_), "ack"));
}

TEST_F(TamperedTrace, APacketLostItsPlace) {
  const auto at = some(records_, carries<wire::Write>(TraceKind::kSend));
  at->header[at->header_size - 1U] ^= std::byte{0xff};
  EXPECT_FALSE(judged(records_).empty());
}

TEST_F(TamperedTrace, AWindowIsOverrun) {
  for (TraceRecord& r : records_) {
    if (r.kind == TraceKind::kWindow) r.a = 5000;
  }
  EXPECT_TRUE(complains(judged(records_), "cwnd"));
}

TEST_F(TamperedTrace, SomethingStaysInFlight) {
  TraceRecord last;
  for (const TraceRecord& r : records_) {
    if (r.kind == TraceKind::kWindow) last = r;
  }
  last.at = records_.back().at;
  last.b = 4096;
  records_.insert(records_.end() - 1, last);
  EXPECT_TRUE(complains(judged(records_), "inflight"));
}

TEST_F(TamperedTrace, DataGoesOutOnADeniedEv) {
  const auto at = some(records_, carries<wire::Write>(TraceKind::kSend));
  const auto packet = wire::parse(at->header_bytes());
  TraceRecord denied;
  denied.at = at->at;
  denied.kind = TraceKind::kEv;
  denied.host = at->host;
  denied.port = at->port;
  denied.ev = at->ev;
  denied.a = static_cast<std::uint64_t>(EvTraceState::kDenied);
  for (const TraceRecord& r : records_) {
    if (r.kind == TraceKind::kQp && r.host == at->host && r.peer_qpn == packet->bth.dest_qpn)
      denied.qpn = r.qpn;
  }
  records_.insert(at, denied);
  EXPECT_TRUE(complains(judged(records_), "ev"));
}

TEST_F(TamperedTrace, AQpFailsForNoReason) {
  const auto at = some(records_, completion(false));
  TraceRecord failed = *at;
  failed.kind = TraceKind::kQpError;
  failed.a = 5;
  records_.insert(at, failed);
  EXPECT_TRUE(complains(judged(records_), "error"));
}

TEST_F(TamperedTrace, TheEndIsMissing) {
  records_.pop_back();
  EXPECT_TRUE(complains(judged(records_), "trace"));
}

// A path that dies under one flow and comes back.
constexpr const char* kPathDies = R"(
[topology]
shape = "two-tier"
hosts = 4
hosts_per_t0 = 2
t1_count = 4
host_rate = "10Gbps"
[transport]
evs = 8
backup_evs = 0
[workload]
kind = "pairs"
hosts = 2
cross = true
message = "64KiB"
repeat_for = "12ms"
[[fault]]
kind = "link-down"
where = "t0-t1"
direction = "up"
from = "300us"
until = "600us"
)";

// Hide that an EV came back: it carries data although the trace says that it is bad.
TEST(TamperedEvTrace, AnEvThatIsStillBadCarriesData) {
  Records records = trace_of(parsed(kPathDies, "path-dies"));
  ASSERT_TRUE(judged(records).empty());
  const auto revived = [](const TraceRecord& r) {
    return r.kind == TraceKind::kEv && r.a == static_cast<std::uint64_t>(EvTraceState::kGood);
  };
  ASSERT_GT(std::count_if(records.begin(), records.end(), revived), 0);
  std::erase_if(records, revived);
  EXPECT_TRUE(complains(judged(records), "ev"));
}

// --- broken parts ---

TEST(BrokenRun, WholeIsFine) { EXPECT_TRUE(BrokenRun({}).complaints().empty()); }

TEST(BrokenRun, PayloadLandsOneByteFurther) {
  EXPECT_TRUE(complains(BrokenRun({.misplace = true}).complaints(), "memory"));
}

TEST(BrokenRun, ADatagramIsGivenTwice) {
  EXPECT_TRUE(complains(BrokenRun({.repeat = true}).complaints(), "conservation"));
}

TEST(BrokenRun, AHeaderIsChangedOnItsWay) {
  EXPECT_TRUE(complains(BrokenRun({.alter = true}).complaints(), "conservation"));
}

TEST(BrokenRun, TransportAcksNeverArrive) {
  EXPECT_TRUE(complains(BrokenRun({.swallow_acks = true}).complaints(), "stuck"));
}

}  // namespace
}  // namespace weft::testing
