#include "fabric/address.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/prng.h"

namespace weft::fabric {
namespace {

TEST(Ipv6, TextIsCanonicalByRfc5952) {
  const std::pair<Ipv6, const char*> cases[] = {
      {{0, 0}, "::"},
      {{0, 1}, "::1"},
      {{0x2001'0db8'0000'0000, 0x0000'0000'0002'0001}, "2001:db8::2:1"},
      {{0x2001'0db8'0000'0001, 0x0001'0001'0001'0001},
       "2001:db8:0:1:1:1:1:1"},  // one zero group is not shortened
      {{0x2001'0000'0000'0001, 0x0000'0000'0000'0001}, "2001:0:0:1::1"},  // the longer run of zeros
      {{0x2001'0db8'0000'0000, 0x0001'0000'0000'0001},
       "2001:db8::1:0:0:1"},  // the first of two equal runs
      {{0xfd00'0001'1805'582a, 0x1809'9811'0000'0000}, "fd00:1:1805:582a:1809:9811::"},
      {{0xabcd'ef01'2345'6789, 0xabcd'ef01'2345'6789}, "abcd:ef01:2345:6789:abcd:ef01:2345:6789"},
      {{0, 0x0000'ffff'7f00'0101}, "::ffff:127.0.1.1"},
  };
  for (const auto& [address, text] : cases) {
    EXPECT_EQ(to_text(address), text);
    const auto parsed = parse_ipv6(text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, address) << text;
  }
}

TEST(Ipv6, ParsesFormsThatAreNotCanonical) {
  EXPECT_EQ(*parse_ipv6("FD00:0001:0:0:0:0:0:0005"), (Ipv6{0xfd00'0001'0000'0000, 5}));
  EXPECT_EQ(*parse_ipv6("1:2:3:4:5:6:7::"), (Ipv6{0x0001'0002'0003'0004, 0x0005'0006'0007'0000}));
  EXPECT_EQ(*parse_ipv6("::2:3:4:5:6:7:8"), (Ipv6{0x0000'0002'0003'0004, 0x0005'0006'0007'0008}));
  EXPECT_EQ(*parse_ipv6("64:ff9b::192.0.2.33"), (Ipv6{0x0064'ff9b'0000'0000, 0xc000'0221}));
  EXPECT_EQ(*parse_ipv6("1:2:3:4:5:6:1.2.3.4"),
            (Ipv6{0x0001'0002'0003'0004, 0x0005'0006'0102'0304}));
}

TEST(Ipv6, ParseErrorsNameTheColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "fewer than eight groups and no '::' at column 1"},
      {"1:2:3", "fewer than eight groups and no '::' at column 6"},
      {":1::2", "expected a hexadecimal digit at column 1"},
      {"1::2::3", "a second '::' at column 7"},
      {":::", "expected a hexadecimal digit at column 3"},
      {"1:2:3:4:5:6:7:8:9", "more than eight groups at column 18"},
      {"1:2:3:4:5:6:7:8::", "'::' beside eight groups at column 18"},
      {"1:2:3:4:5:6:7:", "expected a group after ':' at column 15"},
      {"12345::", "a group of more than four digits at column 5"},
      {"fd00::1/64", "expected ':' at column 8"},
      {"fe80::1%eth0", "expected ':' at column 8"},
      {"::1.2.3", "expected '.' at column 8"},
      {"::1.2.3.256", "a decimal number above 255 at column 11"},
      {"::1.2.3.04", "a decimal number with a leading zero at column 10"},
      {"::1.2.3.4:5", "expected the end after an IPv4 address at column 10"},
      {"1:2:3:4:5:6:7:1.2.3.4", "more than eight groups at column 22"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = parse_ipv6(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message, "IPv6 address '" + std::string(text) + "': " + message);
  }
}

TEST(Ipv6, ParseErrorOfALongTextIsOneShortLine) {
  const auto parsed = parse_ipv6("::\n\x01\xff" + std::string(10'000, 'x'));
  ASSERT_FALSE(parsed);
  EXPECT_LT(parsed.error().message.size(), 200u);
  for (const char c : parsed.error().message) EXPECT_TRUE(c >= ' ' && c <= '~');
}

TEST(Ipv6, ParsingTheTextGivesTheAddress) {
  Prng prng(1);
  for (int i = 0; i < 20'000; ++i) {
    Ipv6 address{prng.next(), prng.next()};
    for (int zeros = 0; zeros < 6; ++zeros) {
      std::uint64_t& half = prng.below(2) == 0 ? address.high : address.low;
      half &= ~(std::uint64_t{0xffff} << 16 * prng.below(4));
    }
    const auto parsed = parse_ipv6(to_text(address));
    ASSERT_TRUE(parsed) << parsed.error().message;
    ASSERT_EQ(*parsed, address);
  }
}

TEST(HostAddress, EncodesHostAndPlaneFromOne) {
  EXPECT_EQ(to_text(address_of(HostPort{.host = 4, .plane = 2})), "fd00:3::5");
  EXPECT_EQ(to_text(address_of(HostPort{.host = 131'071, .plane = 7})), "fd00:8::2:0");
  for (const HostIndex host : {0u, 1u, 0xffffu, 131'071u, 0xffff'fffeu, 0xffff'ffffu}) {
    for (std::uint32_t plane = 0; plane < kPlaneCountMax; ++plane) {
      const Ipv6 address = address_of(HostPort{host, plane});
      EXPECT_EQ(port_of(address), (HostPort{host, plane}));
      EXPECT_EQ(with_plane(address, 5), address_of(HostPort{host, 5}));
      EXPECT_EQ(usids_of(address), std::nullopt);
    }
  }
}

TEST(HostAddress, OtherAddressesAreNotTakenForHosts) {
  for (const char* text : {"::", "fd00::1", "fd00:9::1", "fd01:1::1", "fd00:1::", "fd00:1:1::1",
                           "fd00:1:0:1::1", "fd00:1::1:0:1", "::ffff:127.0.1.1"}) {
    EXPECT_EQ(port_of(*parse_ipv6(text)), std::nullopt) << text;
  }
}

// The path of the README of this folder: T0 5, T1 42, T0 9, host 17 in plane 3.
TEST(UsidAddress, EachSwitchShiftsOutTheFirstUsid) {
  UsidList usids{{0x1805, 0x582a, 0x1809, 0x9811}};
  Ipv6 address = address_of(usids);
  const char* const seen[] = {"fd00:1:1805:582a:1809:9811::", "fd00:1:582a:1809:9811::",
                              "fd00:1:1809:9811::", "fd00:1:9811::"};
  for (const char* text : seen) {
    EXPECT_EQ(to_text(address), text);
    EXPECT_EQ(usids_of(address), usids);
    EXPECT_EQ(port_of(address), std::nullopt);
    address = shift_usid(address);
    usids.shift();
  }
  EXPECT_EQ(to_text(address), "fd00:1::");
  EXPECT_EQ(usids_of(address), std::nullopt);
}

TEST(UsidAddress, OtherAddressesAreNotTakenForUsidLists) {
  EXPECT_TRUE(usids_of(*parse_ipv6("fd00:1:1:2:3:4:5:6")));
  EXPECT_FALSE(usids_of(*parse_ipv6("fd00:2:1:2:3:4:5:6")));
  EXPECT_FALSE(usids_of(*parse_ipv6("fd00:1:0:2:3:4:5:6")));
  EXPECT_FALSE(usids_of(*parse_ipv6("fd00:1:1:2:0:4::")));
}

TEST(EntropyFields, UdpSourcePortIsTheUpperHalfOfTheEntropy) {
  static_assert(fields_of_entropy(0xf3b0'4256) == EntropyFields{0xf3b0, 0x4256});
  static_assert(entropy_of_fields({0xf3b0, 0x4256}) == 0xf3b0'4256);
  EXPECT_EQ(entropy_of_fields({0xf3b0, 0xa'4256}),
            0xf3b0'4256u);  // the upper bits of the label are ignored
}

}  // namespace
}  // namespace weft::fabric
