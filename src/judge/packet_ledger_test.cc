#include "judge/packet_ledger.h"

#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

TraceBuilder one_sent() {
  TraceBuilder run;
  run.post({.id = 1, .with_immediate = true, .immediate = 1});
  run.send(0);
  return run;
}

std::string broken(TraceBuilder run, const Options& options = {}) {
  run.add(TraceKind::kEnd, 0);
  return run.broken(options);
}

TEST(RuleConservation, APacketMayArriveAsOftenAsItWasSent) {
  TraceBuilder run = one_sent();
  const TraceRecord sent = run.records().back();
  run.arrive(sent);
  EXPECT_EQ(broken(run), "");
  run.arrive(sent);
  EXPECT_EQ(broken(run), "conservation");
  EXPECT_EQ(broken(run, {.duplicates = true}), "");
}

TEST(RuleConservation, APacketWithOneChangedBitCountsAsUnsent) {
  for (const std::size_t at : {10u, 20u, 39u}) {
    TraceBuilder run = one_sent();
    TraceRecord sent = run.records().back();
    sent.header[at] ^= std::byte{1};
    run.arrive(sent);
    EXPECT_EQ(broken(run), "conservation");
    run.records().back().flags = 4;  // a packet marked as damaged may differ
    EXPECT_EQ(broken(run), "");
  }
}

TEST(RuleConservation, ATrimmedPacketMayHaveAShorterHeader) {
  TraceBuilder run = one_sent();
  TraceRecord sent = run.records().back();
  ASSERT_EQ(sent.header_size, 40);
  sent.size = 0;
  sent.header_size = 36;
  run.arrive(sent);
  EXPECT_EQ(broken(run), "conservation");
  run.records().back().flags = 2;
  EXPECT_EQ(broken(run), "");
  run.records().back().header_size = 12;
  EXPECT_EQ(broken(run), "");
  run.records().back().header[15] ^= std::byte{1};
  run.records().back().header_size = 16;
  EXPECT_EQ(broken(run), "conservation");
}

TEST(RuleConservation, EqualPacketsMayArriveAsOftenAsTheyWereSent) {
  TraceBuilder run = one_sent();
  run.arrive(run.records().back());
  const TraceRecord ack = run.transport_ack(0);
  run.transport_ack(0);
  run.arrive(ack);
  run.arrive(ack);
  EXPECT_EQ(broken(run), "");
  run.arrive(ack);
  EXPECT_EQ(broken(run), "conservation");
}

TEST(RuleConservation, APacketSentToAnUnknownDestinationMayArrive) {
  TraceBuilder run = one_sent();
  const TraceRecord sent = run.records().back();
  run.records().back().peer = TraceRecord::kUnknownHost;
  run.arrive(sent);
  EXPECT_EQ(broken(run), "");
}

TEST(PacketLedger, ForgetsOldPacketsAndThoseBeyondItsBound) {
  TraceBuilder run;
  run.post({.id = 1, .length = 5000 * TraceBuilder::kMtu});
  std::vector<TraceRecord> sent;
  for (int i = 0; i < 5000; ++i) sent.push_back(run.send(i));

  PacketLedger young({.life = Duration::ns(100)});
  for (const TraceRecord& record : sent) young.on_send(record);
  EXPECT_LE(young.size(), 101u);

  PacketLedger few({.packets_max = 10});
  for (const TraceRecord& record : sent) few.on_send(record);
  EXPECT_EQ(few.size(), 10u);

  PacketLedger all({});
  for (const TraceRecord& record : sent) all.on_send(record);
  EXPECT_EQ(all.size(), 5000u);
  for (TraceRecord record : sent) {
    record.host = record.peer;
    EXPECT_TRUE(all.on_receive(record));
    EXPECT_FALSE(all.on_receive(record));
    EXPECT_TRUE(few.on_receive(record));  // this ledger has forgotten entries: it accepts all
  }
  EXPECT_EQ(all.size(), 0u);
}

}  // namespace
}  // namespace weft::judge
