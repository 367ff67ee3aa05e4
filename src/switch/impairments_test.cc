// The share of packets that each fault affects, over many packets with fixed seeds; the length of
// bursts; acknowledgements that are lost only once.
#include "switch/impairments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "wire/packet.h"

namespace weft::switching {
namespace {

using fabric::ImpairmentKind;

constexpr std::uint32_t kPackets = 200'000;
constexpr fabric::LinkId kLink = 17;

fabric::Impairment impairment(ImpairmentKind kind, double share) {
  fabric::Impairment out;
  out.kind = kind;
  out.share_of_2_32 = static_cast<std::uint64_t>(share * 4294967296.0);
  return out;
}

Passing packet(std::uint32_t entropy = 0) { return {.entropy = entropy, .header = {}}; }

struct Ack {
  std::array<std::byte, wire::kHeaderSizeMax> bytes{};
  std::size_t size = 0;
  operator Passing() const { return {.entropy = 0, .header = ConstBytes(bytes).first(size)}; }
};

Ack transport_ack(std::uint32_t qpn, std::uint32_t psn, wire::AckSyndrome syndrome) {
  Ack out;
  const wire::Bth bth{.opcode = wire::Opcode::kTransportAck, .dest_qpn = qpn, .psn = Psn(psn)};
  out.size = wire::emit(bth, wire::TransportAck{.syndrome = syndrome}, out.bytes);
  return out;
}

TEST(Impairments, LossAffectsTheConfiguredShareOfPackets) {
  for (const double share : {0.001, 0.01, 0.2, 1.0}) {
    Impairments impairments{Prng(1)};
    impairments.start(1, kLink, impairment(ImpairmentKind::kLoss, share));
    std::uint32_t lost = 0;
    for (std::uint32_t i = 0; i < kPackets; ++i) lost += impairments.at_link(kLink, packet()).lost;
    // The tolerance is four standard deviations.
    const double expected = share * kPackets;
    EXPECT_NEAR(lost, expected, 4 * std::sqrt(expected * (1 - share)) + 0.5) << share;
  }
}

TEST(Impairments, AnImpairmentAppliesOnlyAtItsPlaceUntilItEnds) {
  Impairments impairments{Prng(1)};
  impairments.start(1, kLink, impairment(ImpairmentKind::kLoss, 1));
  EXPECT_TRUE(impairments.on_link(kLink));
  EXPECT_FALSE(impairments.on_link(kLink + 1));
  EXPECT_FALSE(impairments.on_nics());
  EXPECT_FALSE(impairments.at_link(kLink + 1, packet()).lost);
  EXPECT_FALSE(impairments.at_nic(kLink, packet()).lost)
      << "a host with the same number as the link";
  impairments.start(2, Impairments::kNicReceive, impairment(ImpairmentKind::kLoss, 1));
  impairments.start(3, Impairments::kAllLinks, impairment(ImpairmentKind::kCorrupt, 1));
  EXPECT_TRUE(impairments.on_nics());
  EXPECT_TRUE(impairments.at_nic(5, packet()).lost);
  EXPECT_TRUE(impairments.at_link(kLink + 1, packet()).corrupted);
  const Harm both = impairments.at_link(kLink, packet());
  EXPECT_TRUE(both.lost && both.corrupted);
  impairments.end(1);
  EXPECT_FALSE(impairments.on_link(kLink));
  EXPECT_FALSE(impairments.at_link(kLink, packet()).lost);
  impairments.end(2);
  impairments.end(3);
  EXPECT_FALSE(impairments.any() || impairments.on_nics() || impairments.on_all_links());
}

struct Bursts {
  double share = 0, mean = 0;
};

Bursts bursts_of(double share, std::uint32_t burst) {
  Impairments impairments{Prng(3)};
  fabric::Impairment spec = impairment(ImpairmentKind::kBurstLoss, share);
  spec.burst = burst;
  impairments.start(1, kLink, spec);
  std::uint32_t lost = 0, begun = 0;
  bool before = false;
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    const bool now = impairments.at_link(kLink, packet()).lost;
    lost += now;
    begun += now && !before;
    before = now;
  }
  return {.share = static_cast<double>(lost) / kPackets, .mean = static_cast<double>(lost) / begun};
}

TEST(Impairments, BurstLossHasTheConfiguredShareAndMeanLength) {
  for (const std::uint32_t burst : {1u, 5u, 20u}) {
    const Bursts got = bursts_of(0.02, burst);
    EXPECT_NEAR(got.share, 0.02, 0.004) << burst;
    EXPECT_NEAR(got.mean, burst, burst * 0.15 + 0.1) << burst;
  }
}

TEST(Impairments, ABurstOnOneLinkDoesNotAffectAnotherLink) {
  Impairments impairments{Prng(3)};
  fabric::Impairment spec = impairment(ImpairmentKind::kBurstLoss, 0.02);
  spec.burst = 1000;
  impairments.start(1, Impairments::kAllLinks, spec);
  while (!impairments.at_link(kLink, packet()).lost) {
  }
  EXPECT_TRUE(impairments.at_link(kLink, packet()).lost);
  std::uint32_t lost = 0;
  for (int i = 0; i < 100; ++i) lost += impairments.at_link(kLink + 1, packet()).lost;
  EXPECT_LT(lost, 100u);
}

TEST(Impairments, DelaysStayBelowTheirBound) {
  Impairments impairments{Prng(5)};
  fabric::Impairment spec = impairment(ImpairmentKind::kReorder, 0.5);
  spec.delay_max = Duration::us(10);
  impairments.start(1, kLink, spec);
  std::uint32_t delayed = 0;
  Duration longest;
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    const Duration delay = impairments.at_link(kLink, packet()).delayed;
    delayed += delay > Duration();
    longest = std::max(longest, delay);
  }
  EXPECT_NEAR(delayed, kPackets * 0.5, 1000);
  EXPECT_LT(longest, Duration::us(10));
  EXPECT_GT(longest, Duration::us(9));
}

TEST(Impairments, EvLossAffectsOnlyItsEvs) {
  Impairments impairments{Prng(1)};
  fabric::Impairment spec = impairment(ImpairmentKind::kEvLoss, 0.2);
  spec.entropies = {7, 9};
  impairments.start(1, Impairments::kNicReceive, spec);
  std::uint32_t lost = 0;
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    EXPECT_FALSE(impairments.at_nic(0, packet(8)).lost);
    lost += impairments.at_nic(0, packet(i % 2 == 0 ? 7 : 9)).lost;
  }
  EXPECT_NEAR(lost, kPackets * 0.2, 800);
}

TEST(Impairments, TheFirstCopyOfEachTransportAckIsLost) {
  Impairments impairments{Prng(1)};
  impairments.start(1, Impairments::kNicReceive, impairment(ImpairmentKind::kFirstTransportAck, 1));
  const Ack ack = transport_ack(0x11, 100, wire::AckSyndrome::kAck);
  const Ack nak = transport_ack(0x11, 100, wire::AckSyndrome::kNakRemoteAccess);
  EXPECT_FALSE(impairments.at_nic(0, nak).lost) << "a NAK is not an ACK";
  EXPECT_TRUE(impairments.at_nic(0, ack).lost);
  EXPECT_FALSE(impairments.at_nic(0, ack).lost);
  EXPECT_TRUE(impairments.at_nic(1, ack).lost) << "the same ACK at another host";
  EXPECT_TRUE(impairments.at_nic(0, transport_ack(0x12, 100, wire::AckSyndrome::kAck)).lost);
  EXPECT_TRUE(impairments.at_nic(0, transport_ack(0x11, 101, wire::AckSyndrome::kAck)).lost);
  EXPECT_FALSE(impairments.at_nic(0, packet()).lost) << "bytes that are not a packet";
}

TEST(Impairments, TheFirstCopyOfEachNakIsLost) {
  Impairments impairments{Prng(1)};
  impairments.start(1, Impairments::kNicReceive, impairment(ImpairmentKind::kFirstNak, 1));
  const Ack nak = transport_ack(0x11, 100, wire::AckSyndrome::kNakRemoteAccess);
  EXPECT_FALSE(impairments.at_nic(0, transport_ack(0x11, 100, wire::AckSyndrome::kAck)).lost);
  EXPECT_TRUE(impairments.at_nic(0, nak).lost);
  EXPECT_FALSE(impairments.at_nic(0, nak).lost);
}

// Each fault draws from its own random stream.
TEST(Impairments, OneFaultDoesNotChangeTheDrawsOfAnother) {
  const auto lost_with = [](bool second) {
    Impairments impairments{Prng(1)};
    impairments.start(1, kLink, impairment(ImpairmentKind::kLoss, 0.5));
    if (second) impairments.start(2, kLink, impairment(ImpairmentKind::kCorrupt, 0.5));
    std::vector<bool> out;
    for (int i = 0; i < 100; ++i) out.push_back(impairments.at_link(kLink, packet()).lost);
    return out;
  };
  EXPECT_EQ(lost_with(false), lost_with(true));
}

}  // namespace
}  // namespace weft::switching
