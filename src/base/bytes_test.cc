#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>

#include "base/ipv6.h"

namespace weft::base {
namespace {

TEST(Bytes, StoresBigEndian) {
  std::array<std::byte, 9> bytes{};
  store64(bytes, 1, 0x0102'0304'0506'0708u);
  for (std::size_t i = 1; i < bytes.size(); ++i) EXPECT_EQ(load8(bytes, i), i);
  store16(bytes, 0, 0xabcd);
  EXPECT_EQ(load8(bytes, 0), 0xab);
  EXPECT_EQ(load8(bytes, 1), 0xcd);
  EXPECT_EQ(load8(bytes, 2), 2);
}

TEST(Bytes, LoadReturnsTheStoredValueAtEveryOffset) {
  for (std::size_t at = 0; at < 8; ++at) {
    std::array<std::byte, 16> bytes{};
    store8(bytes, at, 0xf1);
    EXPECT_EQ(load8(bytes, at), 0xf1);
    store16(bytes, at, 0xf1f2);
    EXPECT_EQ(load16(bytes, at), 0xf1f2);
    store24(bytes, at, 0xf1f2f3);
    EXPECT_EQ(load24(bytes, at), 0xf1f2f3u);
    store32(bytes, at, 0xf1f2f3f4);
    EXPECT_EQ(load32(bytes, at), 0xf1f2f3f4u);
    store64(bytes, at, 0xf1f2f3f4f5f6f7f8);
    EXPECT_EQ(load64(bytes, at), 0xf1f2f3f4f5f6f7f8u);
  }
}

TEST(Bytes, StoreIgnoresBitsAboveTheWidthOfTheField) {
  std::array<std::byte, 4> bytes{};
  store8(bytes, 0, 0x1ff);
  store16(bytes, 1, 0x1'ffff);
  EXPECT_EQ(load8(bytes, 0), 0xff);
  EXPECT_EQ(load16(bytes, 1), 0xffff);
  EXPECT_EQ(load8(bytes, 3), 0);
}

TEST(Ipv6, FirstByteOnTheWireIsTheTopByteOfHigh) {
  std::array<std::byte, 20> bytes{};
  const Ipv6 address{.high = 0xfd00'0000'0000'0001u, .low = 0x1234u};
  store_ipv6(bytes, 3, address);
  EXPECT_EQ(load8(bytes, 3), 0xfd);
  EXPECT_EQ(load8(bytes, 18), 0x34);
  EXPECT_EQ(load_ipv6(bytes, 3), address);
}

}  // namespace
}  // namespace weft::base
