// Ipv6: an address as two 64-bit halves. The first byte on the wire is the top byte of `high`. An
// IPv4 address is written as ::ffff:a.b.c.d.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace weft {

struct Ipv6 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const Ipv6&, const Ipv6&) = default;
};
inline constexpr std::size_t kIpv6AddressSize = 16;

namespace base {

// ::ffff:0:0/96
constexpr bool is_ipv4(const Ipv6& ip) { return ip.high == 0 && ip.low >> 32 == 0xffff; }
// False for multicast, broadcast and unspecified addresses.
constexpr bool is_unicast(const Ipv6& ip) {
  const auto v4 = static_cast<std::uint32_t>(ip.low);
  if (is_ipv4(ip)) return v4 >> 24 != 0 && v4 >> 28 < 14;
  return ip != Ipv6{} && ip.high >> 56 != 0xff;
}
// 127/8 and ::1.
constexpr bool is_loopback(const Ipv6& ip) {
  return (is_ipv4(ip) && (ip.low >> 24 & 0xff) == 127) || (ip.high == 0 && ip.low == 1);
}
// `host_order`: 127.0.0.1 is 0x7f000001.
constexpr Ipv6 ipv4(std::uint32_t host_order) {
  return {.high = 0, .low = 0xffff'0000'0000u | host_order};
}
constexpr Ipv6 ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return ipv4(std::uint32_t{a} << 24 | std::uint32_t{b} << 16 | std::uint32_t{c} << 8 | d);
}

// REQUIRES at + kIpv6AddressSize <= in.size() (out.size()).
inline Ipv6 load_ipv6(ConstBytes in, std::size_t at) {
  return {.high = load64(in, at), .low = load64(in, at + 8)};
}
inline void store_ipv6(Bytes out, std::size_t at, const Ipv6& address) {
  store64(out, at, address.high);
  store64(out, at + 8, address.low);
}

// An address as text has eight groups of 16 bits.
inline constexpr std::size_t kIpv6Groups = 8;
using Ipv6Groups = std::array<std::uint16_t, kIpv6Groups>;
Ipv6Groups groups_of(const Ipv6& address);
Ipv6 from_groups(const Ipv6Groups& groups);

// RFC 5952: lower case, no leading zeros, the longest run of zero groups as "::", ::ffff:a.b.c.d
// for mapped IPv4.
std::string to_text(const Ipv6& address);

}  // namespace base
}  // namespace weft
