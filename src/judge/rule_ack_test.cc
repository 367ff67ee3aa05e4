#include <gtest/gtest.h>

#include "judge/trace_builder.h"

namespace weft::judge {
namespace {

constexpr std::uint32_t kUnits = (3 * TraceBuilder::kNominal + 255) / 256;

// PSNs 0, 1 and 3 arrive; 2 is lost.
TraceBuilder with_a_hole() {
  TraceBuilder run;
  run.post({.id = 1, .length = 10 * TraceBuilder::kMtu});
  for (const int i : {0, 1, 2, 3}) {
    const TraceRecord sent = run.send(i);
    if (i != 2) run.arrive(sent);
  }
  return run;
}

std::string with_sack(std::int64_t cack, const std::function<void(wire::Sack&)>& edit) {
  TraceBuilder run = with_a_hole();
  run.sack(cack, edit);
  run.add(TraceKind::kEnd, 0);
  return run.broken();
}

TEST(RuleAck, ASackMayReportOnlyPacketsThatArrived) {
  EXPECT_EQ(with_sack(1,
                      [](wire::Sack& s) {
                        s.bitmap = 0b10;
                        s.ooo_count = 1;
                        s.rcvd_bytes_256 = kUnits;
                      }),
            "");
  EXPECT_EQ(with_sack(0, [](wire::Sack& s) { s.bitmap = 0b101; }), "");
  EXPECT_EQ(with_sack(-1, [](wire::Sack& s) { s.ooo_count = 3; }), "");
  EXPECT_EQ(with_sack(1,
                      [](wire::Sack& s) {
                        s.bitmap_offset = -63;
                        s.bitmap = ~std::uint64_t{0};
                      }),
            "");
  EXPECT_EQ(with_sack(2, {}), "ack");
  EXPECT_EQ(with_sack(3, {}), "ack");
  EXPECT_EQ(with_sack(1, [](wire::Sack& s) { s.bitmap = 0b01; }), "ack");
  EXPECT_EQ(with_sack(1, [](wire::Sack& s) { s.bitmap = 0b110; }), "ack");
  EXPECT_EQ(with_sack(1, [](wire::Sack& s) { s.ooo_count = 2; }), "ack");
  EXPECT_EQ(with_sack(1, [](wire::Sack& s) { s.rcvd_bytes_256 = kUnits + 1; }), "ack");
}

TEST(RuleAck, ATransportAckMayNotPassTheFirstMissingPsn) {
  const auto run_with = [](std::int64_t index, wire::AckSyndrome syndrome) {
    TraceBuilder run = with_a_hole();
    run.transport_ack(index, syndrome);
    run.add(TraceKind::kEnd, 0);
    return run.broken();
  };
  EXPECT_EQ(run_with(1, wire::AckSyndrome::kAck), "");
  EXPECT_EQ(run_with(2, wire::AckSyndrome::kAck), "ack");
  EXPECT_EQ(run_with(3, wire::AckSyndrome::kNakRemoteAccess), "");
}

TEST(RuleAck, AnAckToAnUnknownQpIsReported) {
  TraceBuilder run = with_a_hole();
  run.sack(0).header[7] = std::byte{0x12};
  run.add(TraceKind::kEnd, 0);
  EXPECT_EQ(run.broken(), "ack");
}

}  // namespace
}  // namespace weft::judge
