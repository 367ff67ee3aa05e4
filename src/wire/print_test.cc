#include <gtest/gtest.h>

#include "wire/test_packets.h"

namespace weft::wire {
namespace {

TEST(Print, GoldenVectorsPrintAsExpected) {
  const char* const expected[] = {
      "WRITE_ONLY_IMM qp=0x000123 psn=10 A ts msn=7 rqmsn=2 va=0x7f0011223344 len=5 imm=0xcafef00d",
      "SACK qp=0x000456 psn=4 cack=4 trigger=+7 ev=0xabcd1234 mark=skip_once mpr=8 "
      "bitmap=+1:0x0000000000000076 echo=0x1234 ooo=5 rcvd=291",
      "SACK qp=0x000456 psn=4 cack=4 probe=0xbeef ev=0xabcd1234 mark=none mpr=8 "
      "bitmap=+1:0x0000000000000076 echo=0x1234 ooo=5 rcvd=291",
      "NACK qp=0x000456 psn=8 reason=trimmed nack_psn=8 ev=0xabcd1234 echo=0x1234",
      "PROBE qp=0x000123 psn=0 probe=0xbeef sent=0x1300",
      "ENDPOINT_REQUEST qp=0x000002 psn=66 id=0x0042 op=ev_probe sent=0x1300",
      "ENDPOINT_RESPONSE qp=0x000002 psn=66 id=0x0042 op=ev_probe echo=0x1300",
      "ENDPOINT_REQUEST qp=0x000002 psn=67 id=0x0043 op=port_status_update ports=0x000001ee "
      "sent=0x1300",
      "TRANSPORT_ACK qp=0x000456 psn=11 ack msn=8",
  };
  const auto vectors = test::golden_vectors();
  ASSERT_EQ(vectors.size(), std::size(expected));
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    EXPECT_EQ(to_string(vectors[i].packet), expected[i]) << vectors[i].name;
  }
}

TEST(Print, RareFlagsAndFieldsArePrinted) {
  EXPECT_EQ(
      to_string({{.opcode = Opcode::kWriteFirst, .solicited = true, .rtx = true, .psn = Psn(1)},
                 Write{.has_timestamp = false, .truncated = true}}),
      "WRITE_FIRST qp=0x000000 psn=1 SE rtx msn=0 rqmsn=0 va=0x0 len=0 truncated");
  EXPECT_EQ(to_string({{.opcode = Opcode::kWriteLast}, Write{.timestamp_coarse = true}}),
            "WRITE_LAST qp=0x000000 psn=0 ts(coarse) msn=0 rqmsn=0 va=0x0 len=0");
  EXPECT_EQ(to_string({{.opcode = Opcode::kNack}, Nack{.reason = static_cast<NackReason>(0x55)}}),
            "NACK qp=0x000000 psn=0 reason=0x55 nack_psn=0 ev=0x00000000 echo=0x0000");
  EXPECT_EQ(to_string({{.opcode = Opcode::kTransportAck},
                       TransportAck{.syndrome = AckSyndrome::kNakRemoteAccess, .msn = 3}}),
            "TRANSPORT_ACK qp=0x000000 psn=0 nak=remote_access msn=3");
  EXPECT_EQ(to_string({{.opcode = Opcode::kSack},
                       Sack{.trigger_offset = -1, .restore_cwnd = true, .cwnd_penalty = 9}}),
            "SACK qp=0x000000 psn=0 cack=0 trigger=-1 ev=0x00000000 mark=none mpr=0 "
            "bitmap=+0:0x0000000000000000 echo=0x0000 ooo=0 rcvd=0 restore_cwnd penalty=9");
  EXPECT_EQ(to_string({{.opcode = Opcode::kEndpointResponse},
                       EndpointResponse{.op = static_cast<EndpointOp>(3)}}),
            "ENDPOINT_RESPONSE qp=0x000000 psn=0 id=0x0000 op=3 echo=0x0000");
}

TEST(Print, ValuesWithoutANamePrintAsUnknown) {
  EXPECT_EQ(to_string(static_cast<Opcode>(0)), "unknown");
  EXPECT_EQ(to_string(static_cast<NackReason>(0)), "unknown");
  EXPECT_EQ(to_string(PathMark::kAlwaysSkip), "always_skip");
}

}  // namespace
}  // namespace weft::wire
