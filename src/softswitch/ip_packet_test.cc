// The fields that a switch reads. After each change the lengths and checksums are valid.
#include "softswitch/ip_packet.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/prng.h"
#include "fabric/address.h"
#include "softswitch/test_ip_packets.h"

namespace weft::softswitch {
namespace {

using world::Dscp;
using world::Ecn;

PacketSpec sample() {
  return {.source = fabric::address_of({.host = 0, .plane = 0}),
          .destination = fabric::address_of({.host = 3, .plane = 0}),
          .source_port = 0x1234,
          .flow_label = 0x3'5678,
          .payload = 1001};
}

std::uint32_t field(ConstBytes packet, std::size_t at) { return base::load16(packet, at); }

TEST(IpPacket, TheChecksumOfAKnownPacketIsRight) {
  // fd00:1::1 to fd00:1::2, ports 1 and 2, payload "abc". The sum by hand: 2 (fd00 + 1) + 1 + 2 +
  // (17 + 11) + (1 + 2 + 11) + 6162 + 6300 = 2becc after carries.
  const auto packet = [] {
    PacketSpec spec{.source = {0xfd00'0001'0000'0000, 1},
                    .destination = {0xfd00'0001'0000'0000, 2},
                    .source_port = 1,
                    .payload = 3};
    auto out = make_packet(spec);
    base::store16(out, 42, 2);
    const char text[] = "abc";
    std::memcpy(out.data() + 48, text, 3);
    return out;
  }();
  std::uint32_t sum = 2 * 0xfd01 + 1 + 2 + 17 + 11 + 1 + 2 + 11 + 0x6162 + 0x6300;
  sum = (sum & 0xffff) + (sum >> 16);
  EXPECT_EQ(udp_checksum(packet), 0xffff - sum);
}

TEST(IpPacket, FactsAreTheFieldsThatASwitchReads) {
  auto packet = make_packet(sample());
  packet.resize(packet.size() + 6);  // Ethernet padding
  const auto facts = read_facts(packet);
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->size, 40u + 8 + 1001);
  EXPECT_EQ(facts->source, sample().source);
  EXPECT_EQ(facts->destination, sample().destination);
  EXPECT_EQ(facts->dscp, Dscp::kTrimmable);
  EXPECT_EQ(facts->ecn, Ecn::kEct0);
  EXPECT_EQ(facts->entropy, 0x1234'5678u);
  EXPECT_TRUE(facts->udp);
  EXPECT_EQ(facts->datagram.size(), 1001u);
}

TEST(IpPacket, PacketsThatAreShortOrNotIpv6AreRefused) {
  const auto packet = make_packet(sample());
  for (std::size_t size = 0; size < packet.size(); ++size)
    EXPECT_FALSE(read_facts(ConstBytes(packet).first(size)).has_value()) << size;
  auto ipv4 = packet;
  ipv4[0] = std::byte{0x45};
  EXPECT_FALSE(read_facts(ipv4).has_value());
}

TEST(IpPacket, PacketsWithContradictingLengthsDoNotCountAsUdp) {
  auto packet = make_packet(sample());
  base::store16(packet, 44, 500);
  const auto facts = read_facts(packet);
  ASSERT_TRUE(facts.has_value());
  EXPECT_FALSE(facts->udp);
  EXPECT_TRUE(facts->datagram.empty());
}

TEST(IpPacket, ACeMarkChangesOnlyTheEcnBits) {
  const auto before = make_packet(sample());
  auto after = before;
  mark_ce(after);
  EXPECT_EQ(read_facts(after)->ecn, Ecn::kCe);
  EXPECT_EQ(read_facts(after)->dscp, Dscp::kTrimmable);
  EXPECT_TRUE(checksum_holds(after));
  EXPECT_TRUE(std::equal(before.begin() + 2, before.end(), after.begin() + 2));
}

TEST(IpPacket, ATrimmedPacketKeepsItsHeadersAndHasValidLengths) {
  for (const std::size_t payload : {0u, 12u, 35u, 36u, 37u, 1001u, 4136u}) {
    PacketSpec spec = sample();
    spec.payload = payload;
    const auto before = make_packet(spec);
    auto after = before;
    const std::size_t size = trim(after, {.dscp = Dscp::kTrimmedLastHop});
    EXPECT_EQ(size, std::min<std::size_t>(before.size(), 40 + 44)) << payload;
    after.resize(size);
    const auto facts = read_facts(after);
    ASSERT_TRUE(facts.has_value());
    EXPECT_TRUE(facts->udp);
    EXPECT_EQ(facts->dscp, Dscp::kTrimmedLastHop);
    EXPECT_EQ(facts->ecn, Ecn::kEct0);
    EXPECT_EQ(facts->entropy, 0x1234'5678u);
    EXPECT_TRUE(checksum_holds(after)) << payload;
    EXPECT_TRUE(std::equal(after.begin() + 48, after.end(), before.begin() + 48));
  }
}

TEST(IpPacket, APacketWithoutChecksumStaysWithoutOne) {
  auto packet = make_packet(sample());
  base::store16(packet, 46, 0);
  set_destination(packet, {1, 2});
  EXPECT_EQ(field(packet, 46), 0u);
  packet.resize(trim(packet, {}));
  EXPECT_EQ(field(packet, 46), 0u);
}

// For any new address a right checksum stays right and a wrong checksum stays wrong.
TEST(IpPacket, ReaddressingKeepsTheChecksumRightOrWrong) {
  Prng prng(7);
  for (int i = 0; i < 2000; ++i) {
    PacketSpec spec = sample();
    spec.fill = static_cast<std::uint8_t>(prng.next());
    spec.payload = prng.below(80);
    auto packet = make_packet(spec);
    const bool wrong = i % 3 == 0;
    if (wrong) base::store16(packet, 46, field(packet, 46) == 0x1111 ? 0x2222 : 0x1111);
    const Ipv6 to{prng.next(), i % 2 == 0 ? 0 : prng.next()};
    set_destination(packet, to);
    EXPECT_EQ(read_facts(packet)->destination, to);
    EXPECT_EQ(checksum_holds(packet), !wrong) << i;
  }
}

TEST(IpPacket, DamageLeavesTheUdpChecksumValid) {
  for (const std::size_t payload : {1u, 2u, 1000u, 1001u}) {
    PacketSpec spec = sample();
    spec.payload = payload;
    const auto before = make_packet(spec);
    auto after = before;
    damage(after);
    EXPECT_NE(after.back(), before.back());
    EXPECT_TRUE(checksum_holds(after)) << payload;
  }
}

}  // namespace
}  // namespace weft::softswitch
