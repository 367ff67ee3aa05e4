#include "wire/icrc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "wire/crc32.h"
#include "wire/test_packets.h"

namespace weft::wire {
namespace {

using test::Buffer;

Buffer noise(std::uint64_t seed, std::size_t size) {
  Prng prng = Prng(seed).fork("icrc");
  Buffer out(size);
  for (std::byte& b : out) b = static_cast<std::byte>(prng.next());
  return out;
}

// CRC-32 by its definition, one bit at a time.
std::uint32_t crc32_by_bit(std::uint32_t state, ConstBytes bytes) {
  for (std::byte b : bytes) {
    state ^= std::to_integer<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) state = state >> 1 ^ (state & 1 ? kCrc32Polynomial : 0);
  }
  return state;
}

TEST(Crc32, GivesThePublishedCheckValue) {
  const std::string_view text = "123456789";
  const ConstBytes bytes(reinterpret_cast<const std::byte*>(text.data()), text.size());
  EXPECT_EQ(~crc32_update(0xffff'ffff, bytes), 0xcbf4'3926u);
  EXPECT_EQ(~crc32_update_by_table(0xffff'ffff, bytes), 0xcbf4'3926u);
}

TEST(Crc32, EveryLengthAndAlignmentAgreesWithTheDefinition) {
  const Buffer bytes = noise(1, 600);
  for (std::size_t size = 0; size < 400; ++size) {
    const ConstBytes in = ConstBytes(bytes).subspan(size % 17, size);
    const auto state = static_cast<std::uint32_t>(Prng(size).next());
    const std::uint32_t expected = crc32_by_bit(state, in);
    ASSERT_EQ(crc32_update(state, in), expected) << size;
    ASSERT_EQ(crc32_update_by_table(state, in), expected) << size;
  }
}

TEST(Crc32, UpdatingInPiecesEqualsUpdatingAtOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Prng prng = Prng(seed).fork("pieces");
    const Buffer bytes = noise(seed, 1 + prng.below(5000));
    std::uint32_t state = 0xffff'ffff;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t piece = std::min<std::size_t>(prng.below(700), bytes.size() - at);
      state = crc32_update(state, ConstBytes(bytes).subspan(at, piece));
      at += piece;
    }
    ASSERT_EQ(state, crc32_update(0xffff'ffff, bytes)) << "seed " << seed;
  }
}

// V1: 40 bytes IPv6, 8 UDP, 40 header, 8 payload and padding, 4 ICRC.
struct V1 {
  Buffer ip = test::golden_v1_ip();
  ConstBytes ip_and_udp = ConstBytes(ip).first(48);
  ConstBytes header = ConstBytes(ip).subspan(48, 40);
  ConstBytes body = ConstBytes(ip).subspan(88, 8);
  ConstBytes icrc = ConstBytes(ip).subspan(96, 4);
};

TEST(Icrc, MatchesTheGoldenVector) {
  const V1 v1;
  Icrc icrc(v1.ip_and_udp);
  icrc.add_header(v1.header);
  icrc.add(v1.body.first(5));
  icrc.add(v1.body.subspan(5));
  Buffer out(4);
  icrc.store(out);
  EXPECT_EQ(out, test::hex("10 be 8f 43"));
  EXPECT_EQ(icrc.value(), 0x438f'be10u);
  EXPECT_TRUE(icrc.matches(v1.icrc));
}

TEST(Icrc, StartingFromTheFieldsEqualsStartingFromTheHeaders) {
  const V1 v1;
  const Envelope envelope = test::golden_v1_envelope();
  Icrc icrc(IcrcFlow{.source = envelope.source,
                     .destination = envelope.destination,
                     .source_port = 0xabcd,
                     .destination_port = kUdpPort,
                     .udp_size = 0x3c});
  icrc.add_header(v1.header);
  icrc.add(v1.body);
  EXPECT_TRUE(icrc.matches(v1.icrc));
}

// Flips every bit of the packet in turn: the ICRC must change, unless routers may change that bit.
TEST(Icrc, EveryBitChangesTheIcrcExceptTheMutableOnes) {
  const V1 v1;
  for (std::size_t bit = 0; bit < 96 * 8; ++bit) {
    Buffer ip = v1.ip;
    ip[bit / 8] ^= static_cast<std::byte>(0x80u >> bit % 8);
    if (bit < 4) continue;  // these bits are the IP version, which the constructor asserts
    Icrc icrc(ConstBytes(ip).first(48));
    icrc.add_header(ConstBytes(ip).subspan(48, 40));
    icrc.add(ConstBytes(ip).subspan(88, 8));
    const std::size_t byte = bit / 8;
    const bool is_mutable = byte < 4 || byte == 7 || byte == 46 || byte == 47 || byte == 52;
    EXPECT_EQ(icrc.matches(v1.icrc), is_mutable) << "bit " << bit;
  }
}

TEST(Icrc, Ipv4ChangesOfTosTtlAndChecksumAreIgnored) {
  const V1 v1;
  const Buffer ip = test::hex(
      "45 12 00 50 00 00 40 00 40 11 12 34 0a 00 00 01 0a 00 00 02 | ab cd 12 b7 00 3c 00 00");
  const auto icrc_of = [&](ConstBytes start) {
    Icrc icrc(start);
    icrc.add_header(v1.header);
    icrc.add(v1.body);
    return icrc.value();
  };
  // The bytes that the ICRC covers, written by hand: eight 0xff bytes, then the headers with their
  // mutable fields as ones.
  Buffer masked = test::hex(
      "ff ff ff ff ff ff ff ff | 45 ff 00 50 00 00 40 00 ff 11 ff ff 0a 00 00 01 0a 00 00 02 |"
      "ab cd 12 b7 00 3c ff ff");
  masked.insert(masked.end(), v1.header.begin(), v1.header.end());
  masked[8 + 28 + 4] = std::byte{0xff};
  masked.insert(masked.end(), v1.body.begin(), v1.body.end());
  EXPECT_EQ(icrc_of(ip), ~crc32_by_bit(0xffff'ffff, masked));
  for (std::size_t byte = 1; byte < ip.size(); ++byte) {
    Buffer changed = ip;
    changed[byte] ^= std::byte{0xff};
    const bool is_mutable =
        byte == 1 || byte == 8 || byte == 10 || byte == 11 || byte == 26 || byte == 27;
    EXPECT_EQ(icrc_of(changed) == icrc_of(ip), is_mutable) << "byte " << byte;
  }
}

TEST(IcrcStart, EqualsAFreshIcrcForFlowsInTurn) {
  IcrcStart start;
  const IcrcFlow none{};
  EXPECT_EQ(start.of(none).value(), Icrc(none).value());
  // Some of these flows share a cache entry.
  for (std::uint16_t round = 0; round < 3; ++round) {
    for (std::uint16_t i = 0; i < 200; ++i) {
      const IcrcFlow flow{.source = {.low = 1},
                          .destination = {.low = std::uint64_t{i} % 7 << 8 | 1},
                          .source_port = static_cast<std::uint16_t>(15'104 + i % 5),
                          .destination_port = 4791,
                          .udp_size = static_cast<std::uint16_t>(60 + i % 64)};
      ASSERT_EQ(start.of(flow).value(), Icrc(flow).value()) << i;
    }
  }
}

}  // namespace
}  // namespace weft::wire
