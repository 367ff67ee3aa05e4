#include "mrclib/description.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace weft::mrclib {
namespace {

GroupDescription sample() {
  GroupDescription out;
  out.mtu = 1024;
  out.immediates_max = 128;
  out.mpr = 32;
  out.gid.fill(std::byte{0xfd});
  out.qps = {{.qpn = 7, .first_psn = 0xff'ffff}, {.qpn = 0xff'ffff, .first_psn = 0}};
  return out;
}

template <typename Description>
void expect_refused(std::vector<std::byte> bytes, const char* says) {
  const auto parsed = Description::from_bytes(bytes);
  ASSERT_FALSE(parsed) << says;
  EXPECT_EQ(parsed.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(parsed.error().message.find(says), std::string::npos) << parsed.error().message;
}

std::vector<std::byte> with(std::vector<std::byte> bytes, std::size_t at, unsigned value) {
  bytes[at] = static_cast<std::byte>(value);
  return bytes;
}

TEST(Description, SurvivesEmittingAndParsing) {
  EXPECT_EQ(GroupDescription::from_bytes(sample().to_bytes()).value(), sample());
  const RegionDescription region{.at = 1, .size = ~std::uint64_t{0} - 1, .rkey = 9};
  EXPECT_EQ(RegionDescription::from_bytes(region.to_bytes()).value(), region);
}

TEST(Description, MistakesInAGroupAreNamed) {
  const auto good = sample().to_bytes();
  ASSERT_EQ(good.size(), GroupDescription::size_of(2));
  for (const std::size_t size : {0, 1, 32, 39, 41, 47}) {
    auto bytes = good;
    bytes.resize(size);
    expect_refused<GroupDescription>(bytes, "expected 32 and 8 for each QP");
  }
  for (std::size_t i = 0; i < 8; ++i)
    expect_refused<GroupDescription>(with(good, i, 0xaa), "not the description of a group");
  expect_refused<GroupDescription>(with(good, 10, 5), "MTU is 1280");
  expect_refused<GroupDescription>(with(good, 9, 1), "MTU is 66560");
  expect_refused<GroupDescription>(with(good, 15, 1), "byte 15");
  expect_refused<GroupDescription>(with(good, 32, 1), "QP 0 of the peer has number 0x1000007");
  expect_refused<GroupDescription>(with(good, 44, 2), "QP 1 of the peer");
}

TEST(Description, MistakesInARegionAreNamed) {
  const auto good = RegionDescription{.at = 4096, .size = 10, .rkey = 1}.to_bytes();
  auto bytes = good;
  bytes.pop_back();
  expect_refused<RegionDescription>(bytes, "27 bytes; expected 28");
  expect_refused<RegionDescription>(with(good, 7, 2), "not the description of a region");
  bytes = RegionDescription{.at = 4096, .size = ~std::uint64_t{0} - 4095, .rkey = 1}.to_bytes();
  expect_refused<RegionDescription>(bytes, "ends beyond its memory");
}

TEST(Description, AnyBytesGiveADescriptionOrOneLine) {
  Prng prng(11);
  for (int round = 0; round < 20'000; ++round) {
    auto bytes = sample().to_bytes();
    for (std::uint64_t changes = prng.below(4); changes > 0; --changes)
      bytes[prng.below(static_cast<std::uint32_t>(bytes.size()))] =
          static_cast<std::byte>(prng.next());
    const auto parsed = GroupDescription::from_bytes(bytes);
    if (parsed) {
      EXPECT_EQ(parsed->to_bytes(), bytes) << "round " << round << " of seed 11";
    } else {
      EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace weft::mrclib
