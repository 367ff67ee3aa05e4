// Sealed packets through the software switch: a trimmed packet can still be authenticated.
#include <gtest/gtest.h>

#include <cstring>

#include "seal/test_secure_pair.h"
#include "softswitch/test_live_fabric.h"
#include "wire/layout.h"

namespace weft::net {
namespace {

using namespace seal::test;
using world::Dscp;

constexpr std::size_t kPayload = 900;

class SecureTrim : public ::testing::Test {
 protected:
  void SetUp() override { shake_hands(a, b); }

  // Sends more packets than the port's queue holds. They are writes with immediate and timestamp,
  // which have the longest header.
  std::vector<softswitch::Got> crowd(std::size_t trimmed_size_after_ip) {
    softswitch::LiveFabricConfig config = softswitch::config_of(softswitch::one_switch(3));
    config.trimmed_size_after_ip = trimmed_size_after_ip;
    softswitch::Bench bench(config);
    for (std::uint32_t i = 0; i < 120; ++i) {
      std::vector<std::byte> header(wire::kHeaderSizeMax);
      header.resize(
          wire::emit({.opcode = wire::Opcode::kWriteOnlyImm, .dest_qpn = 0x123, .psn = Psn(i)},
                     wire::Write{.sent = {7}, .va = 0x1000, .rkey = 5, .immediate = i}, header));
      const auto datagram = sealed(a.session.out(), header, some_payload(kPayload));
      softswitch::PacketSpec spec = softswitch::Bench::spec(i % 2, 2);
      spec.payload = datagram.size();
      auto packet = softswitch::make_packet(spec);
      std::memcpy(packet.data() + kDatagramAt, datagram.data(), datagram.size());
      softswitch::complete_checksum(packet);
      bench.fabric.on_packet(softswitch::at_us(1), i % 2, 0, packet);
    }
    auto got = bench.receive(softswitch::at_us(1'000'000));
    std::erase_if(got, [](const softswitch::Got& g) {
      return !world::is_trimmed(softswitch::read_facts(g.packet)->dscp);
    });
    return got;
  }
  Result<seal::ReceiveDirection::Opened, DropReason> open(softswitch::Got& got) {
    return b.session.in().open(Bytes(got.packet).subspan(kDatagramAt),
                               {.ev = kEv, .trimmed = true});
  }

  static constexpr std::size_t kDatagramAt = wire::kIpv6Size + wire::kUdpSize;
  TestEnd a{seal::test::config_of(id_of(1), id_of(2), 1)},
      b{seal::test::config_of(id_of(2), id_of(1), 2)};
};

TEST_F(SecureTrim, TrimmedHeaderIsAuthenticated) {
  auto trimmed = crowd(seal::kSealedTrimmedSizeAfterIp);
  ASSERT_GT(trimmed.size(), 10u);
  for (softswitch::Got& got : trimmed) {
    EXPECT_TRUE(softswitch::checksum_holds(got.packet));
    const auto opened = open(got);
    ASSERT_TRUE(opened);
    const auto packet = wire::parse(opened->header, {.trimmed = true});
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->bth.dest_qpn, 0x123u);
  }
}

TEST_F(SecureTrim, AlteredTrimmedHeaderIsRefused) {
  auto trimmed = crowd(seal::kSealedTrimmedSizeAfterIp);
  ASSERT_FALSE(trimmed.empty());
  softswitch::Got& got = trimmed.front();
  got.packet[kDatagramAt + wire::bth_at::kPsnWord + 3] ^= std::byte{1};
  const auto opened = open(got);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), DropReason::kForged);
}

TEST_F(SecureTrim, TrimBeforeTheTagLosesThePacket) {
  auto trimmed = crowd(softswitch::kTrimmedIpPayload);
  ASSERT_FALSE(trimmed.empty());
  const auto opened = open(trimmed.front());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), DropReason::kTooShort);
}

}  // namespace
}  // namespace weft::net
