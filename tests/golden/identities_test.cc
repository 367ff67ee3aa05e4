// Results that follow from serialisation, propagation and conservation alone, whatever the
// transport does. The tolerance is rounding, or what a comment beside the check says.
#include <gtest/gtest.h>

#include "../support/run_file.h"
#include "judge/trace_flags.h"
#include "wire/packet.h"

namespace weft::testing {
namespace {

constexpr double kPacket = 4150;      // bytes on the wire, framing included
constexpr double kLastPacket = 2136;  // last packet of a flow of 2,000,000 bytes, as in htsim
constexpr double kFlowPackets = 490;

double us(double bytes, double gbps) { return bytes * 8 / gbps / 1000; }

// 489 full packets and a shorter one over six links. The last full packet is stored and forwarded
// five times, the shorter one follows it directly, and the acknowledgement returns.
TEST(Identities, OneFlowTakesItsSerialisationAndOneRtt) {
  const run::Outcome outcome = run(load("htsim-one-flow"), 1);
  ASSERT_TRUE(outcome.held()) << failures(outcome);
  const double there = (kFlowPackets - 1 + 5) * us(kPacket, 100) + us(kLastPacket, 100) + 6;
  const double back = 6 + 6 * us(110, 100);  // time of the Transport ACK
  EXPECT_NEAR(outcome.results.fct_us.max, there + back, 0.02)
      << "a SACK ahead of it costs some nanoseconds";
  EXPECT_NEAR(outcome.results.fct_us.max, 176.2, us(kPacket, 100))
      << "the result of htsim, within one packet";
}

// With unlimited queues and no congestion control the last of N flows completes after N
// serialisations and one RTT.
TEST(Identities, AnIncastWithoutLossTakesNSerialisationsAndOneRtt) {
  scenario::Scenario scenario = load("htsim-incast-32");
  scenario.switches.queue_bytes = scenario.switches.last_hop_queue_bytes = 1u << 30;
  scenario.transport.congestion_control = false;
  scenario.transport.cwnd_max_bytes = 1u << 30;
  const run::Outcome outcome = run(scenario, 1);
  ASSERT_TRUE(outcome.held()) << failures(outcome);
  EXPECT_EQ(outcome.results.facts.trims + outcome.results.facts.drops, 0u);
  const double serialised = 32 * (us(kPacket, 400) * (kFlowPackets - 1) + us(kLastPacket, 400));
  const double rtt = 8 + 3 * us(kPacket, 400) +
                     4 * us(110, 400);  // the senders are in the receiver's pod: four links
  // Tolerance: control packets precede data, and the last packet to arrive may be a full one.
  EXPECT_NEAR(outcome.results.fct_us.max, serialised + rtt, 2 * us(kPacket, 400));
}

// 2(g - 1) steps. Each takes the serialisation of a chunk and the path to the next rank. At the end
// the acknowledgement of the last chunk returns.
TEST(Identities, RingAllReduceTakesTheTimeOfItsSteps) {
  const run::Outcome outcome = run(load("ring-16"), 1);
  ASSERT_TRUE(outcome.held()) << failures(outcome);
  const double packet = us(4096 + 166, 400);
  const double chunk = 64 * packet;  // 256 KiB
  const double inside = 2 * 1 + packet, across = 4 * 1 + 3 * packet;
  // The ring of 16 ranks, four per T0, has twelve paths inside a T0 and four across. The 30 steps
  // go around it twice, less two paths inside a T0.
  const double paths = 2 * (12 * inside + 4 * across) - 2 * inside;
  EXPECT_NEAR(outcome.results.slowest_over_ideal * outcome.results.ideal_us, 30 * chunk + paths + 4,
              0.01 * 250);
}

struct Trims {
  std::uint64_t data = 0, probes = 0, nacks = 0;
};

// Every packet is placed once. Every trimmed data packet is answered by one NACK, a trimmed probe
// by none.
TEST(Identities, EveryPacketIsPlacedOnceAndEveryTrimHasOneNack) {
  scenario::Scenario scenario = load("htsim-incast-32");
  Trims seen;
  run::RunOptions options;
  options.on_trace = [&](std::span<const TraceRecord> records) {
    for (const TraceRecord& r : records) {
      if (r.kind != TraceKind::kSend && r.kind != TraceKind::kReceive) continue;
      const bool trimmed = r.kind == TraceKind::kReceive && judge::is_trimmed(r);
      const auto packet = wire::parse(r.header_bytes(), {.trimmed = trimmed});
      if (!packet) continue;
      if (trimmed) ++(std::holds_alternative<wire::Write>(packet->body) ? seen.data : seen.probes);
      if (r.kind == TraceKind::kSend && std::holds_alternative<wire::Nack>(packet->body))
        ++seen.nacks;
    }
  };
  const run::Outcome outcome = run(scenario, options);
  ASSERT_TRUE(outcome.held()) << failures(outcome);
  ASSERT_EQ(outcome.results.facts.drops, 0u) << "the check requires that no header is dropped";
  EXPECT_EQ(counter(outcome, "transport.packets_placed"), 32u * 490);
  EXPECT_EQ(counter(outcome, "transport.bytes_placed"), 32u * 1'969'620);
  EXPECT_GT(seen.data, 1000u);
  EXPECT_EQ(seen.nacks, seen.data);
  EXPECT_EQ(seen.data + seen.probes, outcome.results.facts.trims);
}

// Every packet that a host sent is delivered or counted as dropped.
TEST(Identities, EverySentPacketIsDeliveredOrCountedAsDropped) {
  for (const char* name : {"fault-mix", "htsim-incast-32", "loss-5pct"}) {
    const run::Outcome outcome = run(load(name), 2);
    EXPECT_EQ(outcome.world.packets_sent, outcome.world.packets_delivered + outcome.world.drops())
        << name;
  }
}

TEST(Identities, LosingOnePlaneOfEightCostsAnEighthOfTheGoodput) {
  const run::Outcome outcome = run(load("plane-down"), 1);
  ASSERT_TRUE(outcome.held()) << failures(outcome);
  EXPECT_NEAR(outcome.results.settled_gbps.value() / outcome.results.baseline_gbps.value(), 7.0 / 8,
              0.004);
  EXPECT_NEAR(outcome.results.recovered_gbps.value() / outcome.results.baseline_gbps.value(), 1,
              0.004);
}

TEST(Identities, LosingFourPortsOfEightHalvesTheGoodput) {
  const run::Outcome outcome = run(load("four-ports-down"), 1);
  ASSERT_TRUE(outcome.held()) << failures(outcome);
  EXPECT_NEAR(outcome.results.settled_gbps.value() / outcome.results.baseline_gbps.value(), 4.0 / 8,
              0.004);
}

// The framing limit is MTU over wire size, on eight planes of 100G.
TEST(Identities, OneQpReachesTheFramingLimit) {
  const run::Outcome outcome = run(load("one-qp"), 1);
  EXPECT_LE(outcome.results.goodput_gbps, 800.0 * 4096 / (4096 + 166));
  EXPECT_GE(outcome.results.goodput_gbps, 0.99 * 800.0 * 4096 / (4096 + 166));
}

}  // namespace
}  // namespace weft::testing
