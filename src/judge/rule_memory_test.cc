#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

using Message = TraceBuilder::Message;
const Message kMessage{.id = 1, .length = 3000};

TEST(RuleMemory, NoComplaintIfEveryByteIsInPlace) {
  TraceBuilder run;
  run.transfer(kMessage);
  run.end({kMessage});
  EXPECT_EQ(run.broken(), "");
}

TEST(RuleMemory, WrongBytesOfACompletedMessageAreReported) {
  TraceBuilder run;
  run.transfer(kMessage);
  run.memory(kMessage).a = 2999;
  run.end();
  EXPECT_EQ(run.broken(), "memory");
  EXPECT_EQ(run.judge()[0].text,
            "message 1 completed, but only 2999 of its 3000 bytes are right in memory");
}

TEST(RuleMemory, ACompletedMessageWithoutAMemoryRecordIsReported) {
  TraceBuilder run;
  run.transfer(kMessage);
  run.end();
  EXPECT_EQ(run.broken(), "memory");
}

TEST(RuleMemory, AnUnsignalledMessageCountsAsCompletedByALaterSuccess) {
  TraceBuilder run;
  run.transfer({.id = 1, .signalled = false});
  run.transfer({.id = 2});
  run.end({{.id = 2}});
  EXPECT_EQ(run.broken(), "memory");
}

TEST(RuleMemory, AMessageThatDidNotCompleteMayBePartlyWritten) {
  TraceBuilder run;
  run.post(kMessage);
  run.send_and_arrive(0);
  run.memory(kMessage).a = 1024;
  run.add(TraceKind::kEnd, 0);
  EXPECT_EQ(run.broken(), "");
}

TEST(RuleMemory, MemoryOfACrashedHostIsNotChecked) {
  TraceBuilder run;
  run.transfer(kMessage);
  run.add(TraceKind::kHostDown, TraceBuilder::kResponder);
  run.end();
  EXPECT_EQ(run.broken(), "");
}

}  // namespace
}  // namespace weft::judge
