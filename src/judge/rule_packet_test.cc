#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

using Edit = std::function<void(wire::Bth&, wire::Write&)>;

TraceBuilder three_packets() {
  TraceBuilder run;
  run.transfer({.id = 1, .with_immediate = true, .immediate = 1});
  run.post({.id = 2, .length = 2051, .with_immediate = true, .immediate = 2});
  return run;
}

std::string broken(TraceBuilder& run) {
  run.add(TraceKind::kEnd, 0);
  run.memory({.id = 1});
  std::swap(run.records().end()[-1], run.records().end()[-2]);
  std::swap(run.records().end()[-1].at, run.records().end()[-2].at);
  return run.broken();
}

std::string third_packet_with(const Edit& edit) {
  TraceBuilder run = three_packets();
  for (int i = 1; i < 3; ++i) run.send(i);
  run.send(3, {.edit = edit});
  return broken(run);
}

TEST(RulePacket, NoComplaintIfThePacketMatchesItsPost) { EXPECT_EQ(third_packet_with({}), ""); }

TEST(RulePacket, EveryFieldThatContradictsThePostIsReported) {
  using wire::Bth, wire::Write;
  EXPECT_EQ(third_packet_with([](Bth&, Write& w) { w.va += 1; }), "packet");
  EXPECT_EQ(third_packet_with([](Bth&, Write& w) { w.message_size += 1; }), "packet");
  EXPECT_EQ(third_packet_with([](Bth&, Write& w) { w.rkey += 1; }), "packet");
  EXPECT_EQ(third_packet_with([](Bth&, Write& w) { w.msn += 1; }), "packet");
  EXPECT_EQ(third_packet_with([](Bth&, Write& w) { w.rqmsn += 1; }), "packet");
  EXPECT_EQ(third_packet_with([](Bth&, Write& w) { w.immediate += 1; }), "packet");
  EXPECT_EQ(third_packet_with([](Bth& b, Write&) { b.opcode = wire::Opcode::kWriteMiddle; }),
            "packet");
}

TEST(RulePacket, APayloadSizeThatContradictsThePostIsReported) {
  TraceBuilder run = three_packets();
  run.send(1).size = 1020;
  EXPECT_EQ(broken(run), "packet");
}

TEST(RulePacket, RtxMustBeSetExactlyOnRetransmissions) {
  const auto run_with = [](std::int64_t index, bool rtx) {
    TraceBuilder run = three_packets();
    run.send(1);
    run.send(index, {.rtx = rtx});
    return broken(run);
  };
  EXPECT_EQ(run_with(1, true), "");
  EXPECT_EQ(run_with(2, false), "");
  EXPECT_EQ(run_with(1, false), "packet");
  EXPECT_EQ(run_with(2, true), "packet");
}

TEST(RulePacket, ARetransmissionAfterItsMessageCompletedIsReported) {
  TraceBuilder run = three_packets();
  run.send(0, {.rtx = true});
  EXPECT_EQ(broken(run), "packet");
}

TEST(RulePacket, APacketBeyondAllPostsIsReported) {
  TraceBuilder run = three_packets();
  for (int i = 1; i < 4; ++i) run.send(i);
  run.send(3, {.edit = [](wire::Bth& b, wire::Write&) { b.psn = b.psn + 1; }});
  EXPECT_EQ(broken(run), "packet");
}

TEST(RulePacket, AHeaderThatDoesNotParseIsReported) {
  TraceBuilder run = three_packets();
  run.send(1).header_size = 7;
  EXPECT_EQ(broken(run), "packet");
}

}  // namespace
}  // namespace weft::judge
