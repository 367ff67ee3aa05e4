// Checks that the judge finds violations. Either one record of a correct trace is changed, or one
// part of the simulated system makes a mistake on purpose: the judge must complain under the right
// rule. It must not complain about the unchanged runs.
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
bool is_receive(const TraceRecord& completion) {
  return (completion.flags & judge::kFlagReceive) != 0;
}
bool is_send_completion(const TraceRecord& r) {
  return r.kind == TraceKind::kComplete && !is_receive(r);
}
bool is_receive_completion(const TraceRecord& r) {
  return r.kind == TraceKind::kComplete && is_receive(r);
}
template <typename Body>
Predicate carries(TraceKind kind) {
  return [kind](const TraceRecord& r) {
    if (r.kind != kind) return false;
    const auto packet = wire::parse(r.header_bytes());
    return packet && std::holds_alternative<Body>(packet->body);
  };
}

// Of the matching records, the one in the middle: it is neither the first nor the last.
Records::iterator middle_match(Records& records, const Predicate& predicate) {
  const auto count = std::count_if(records.begin(), records.end(), predicate);
  EXPECT_GT(count, 0);
  auto left = count / 2;
  return std::find_if(records.begin(), records.end(),
                      [&](const TraceRecord& r) { return predicate(r) && left-- == 0; });
}

class TamperedTrace : public ::testing::Test {
 protected:
  // The trace of a scenario with eight QPs and immediates; some QPs stay within one T0, others do
  // not.
  static const Records& good() {
    static const Records records = trace_of(load("first-ack-lost"));
    return records;
  }
  Records records_ = good();
};

TEST_F(TamperedTrace, AnUnchangedTraceHasNoComplaint) { EXPECT_TRUE(judged(records_).empty()); }

TEST_F(TamperedTrace, AMissingCompletionIsReported) {
  records_.erase(middle_match(records_, is_send_completion));
  EXPECT_TRUE(complains(judged(records_), "stuck"));
}

TEST_F(TamperedTrace, ASecondCompletionIsReported) {
  const auto at = middle_match(records_, is_send_completion);
  records_.insert(at, *at);
  EXPECT_TRUE(complains(judged(records_), "completion"));
}

TEST_F(TamperedTrace, ACompletionBeforeItsAckIsReported) {
  const TraceRecord completion_record = *middle_match(records_, is_send_completion);
  const auto is_that_completion = [&](const TraceRecord& r) {
    return r.kind == TraceKind::kComplete && r.host == completion_record.host &&
           r.qpn == completion_record.qpn && r.id == completion_record.id &&
           r.flags == completion_record.flags;
  };
  records_.erase(std::find_if(records_.begin(), records_.end(), is_that_completion));
  const auto posted = std::find_if(records_.begin(), records_.end(), [&](const TraceRecord& r) {
    return r.kind == TraceKind::kPost && r.host == completion_record.host &&
           r.qpn == completion_record.qpn && r.id == completion_record.id;
  });
  TraceRecord early = completion_record;
  early.at = posted->at;
  records_.insert(posted + 1, early);
  EXPECT_TRUE(complains(judged(records_), "completion"));
}

TEST_F(TamperedTrace, AWrongImmediateIsReported) {
  middle_match(records_, is_receive_completion)->c ^= 1;
  EXPECT_TRUE(complains(judged(records_), "wimm-order"));
}

TEST_F(TamperedTrace, AnImmediateThatIsNeverDeliveredIsReported) {
  records_.erase(middle_match(records_, is_receive_completion));
  EXPECT_FALSE(judged(records_).empty());
}

TEST_F(TamperedTrace, AWrongByteIsReported) {
  --middle_match(records_, of_kind(TraceKind::kMemory))->a;
  EXPECT_TRUE(complains(judged(records_), "memory"));
}

TEST_F(TamperedTrace, AMissingMemoryRecordIsReported) {
  records_.erase(middle_match(records_, of_kind(TraceKind::kMemory)));
  EXPECT_TRUE(complains(judged(records_), "memory"));
}

TEST_F(TamperedTrace, APacketThatArrivesTwiceIsReported) {
  const auto at = middle_match(records_, carries<wire::Write>(TraceKind::kReceive));
  records_.insert(at, *at);
  EXPECT_TRUE(complains(judged(records_), "conservation"));
}

TEST_F(TamperedTrace, AnAckForAPacketThatNeverArrivedIsReported) {
  records_.erase(middle_match(records_, carries<wire::Write>(TraceKind::kReceive)));
  EXPECT_TRUE(complains(judged(records_), "ack"));
}

TEST_F(TamperedTrace, AChangedHeaderIsReported) {
  const auto at = middle_match(records_, carries<wire::Write>(TraceKind::kSend));
  at->header[at->header_size - 1U] ^= std::byte{0xff};
  EXPECT_FALSE(judged(records_).empty());
}

TEST_F(TamperedTrace, DataBeyondTheWindowIsReported) {
  for (TraceRecord& r : records_) {
    if (r.kind == TraceKind::kWindow) r.a = 5000;
  }
  EXPECT_TRUE(complains(judged(records_), "cwnd"));
}

TEST_F(TamperedTrace, BytesThatStayInFlightAreReported) {
  TraceRecord last;
  for (const TraceRecord& r : records_) {
    if (r.kind == TraceKind::kWindow) last = r;
  }
  last.at = records_.back().at;
  last.b = 4096;
  records_.insert(records_.end() - 1, last);
  EXPECT_TRUE(complains(judged(records_), "inflight"));
}

TEST_F(TamperedTrace, DataOnADeniedEvIsReported) {
  const auto at = middle_match(records_, carries<wire::Write>(TraceKind::kSend));
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

TEST_F(TamperedTrace, AQpErrorWithoutACauseIsReported) {
  const auto at = middle_match(records_, is_send_completion);
  TraceRecord failed = *at;
  failed.kind = TraceKind::kQpError;
  failed.a = 5;
  records_.insert(at, failed);
  EXPECT_TRUE(complains(judged(records_), "error"));
}

TEST_F(TamperedTrace, AMissingEndIsReported) {
  records_.pop_back();
  EXPECT_TRUE(complains(judged(records_), "trace"));
}

// A scenario in which one path of a flow fails and is repaired.
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

// Removes the records that say that an EV became GOOD. Later data on such an EV must be reported.
TEST(TamperedEvTrace, DataOnAnEvThatIsStillBadIsReported) {
  Records records = trace_of(parsed(kPathDies, "path-dies"));
  ASSERT_TRUE(judged(records).empty());
  const auto became_good = [](const TraceRecord& r) {
    return r.kind == TraceKind::kEv && r.a == static_cast<std::uint64_t>(EvTraceState::kGood);
  };
  ASSERT_GT(std::count_if(records.begin(), records.end(), became_good), 0);
  std::erase_if(records, became_good);
  EXPECT_TRUE(complains(judged(records), "ev"));
}

// --- a part of the simulated system makes a mistake --------------------------------------------

TEST(BrokenRun, AnUnbrokenRunHasNoComplaint) { EXPECT_TRUE(BrokenRun({}).complaints().empty()); }

TEST(BrokenRun, PayloadFromTheWrongAddressIsReported) {
  EXPECT_TRUE(complains(BrokenRun({.misplace = true}).complaints(), "memory"));
}

TEST(BrokenRun, ADatagramDeliveredTwiceIsReported) {
  EXPECT_TRUE(complains(BrokenRun({.repeat = true}).complaints(), "conservation"));
}

TEST(BrokenRun, AHeaderChangedInTheNetworkIsReported) {
  EXPECT_TRUE(complains(BrokenRun({.alter = true}).complaints(), "conservation"));
}

TEST(BrokenRun, AMessageWhoseTransportAcksNeverArriveIsReported) {
  EXPECT_TRUE(complains(BrokenRun({.swallow_acks = true}).complaints(), "stuck"));
}

}  // namespace
}  // namespace weft::testing
