// Addresses as people and as the kernel write them. IPv4 is ::ffff:a.b.c.d.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/ipv6.h"
#include "base/result.h"

namespace weft::net {

// ::ffff:0:0/96
constexpr bool is_ipv4(const Ipv6& ip) { return ip.high == 0 && ip.low >> 32 == 0xffff; }
// None of many, as multicast and broadcast are, nor none at all.
constexpr bool is_of_one_host(const Ipv6& ip) {
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

// "127.0.1.1", "fd00:1::7". Errors: kInvalid with what was expected.
Result<Ipv6> parse_address(const std::string& text);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};
SocketAddress to_sockaddr(const Ipv6& ip, std::uint16_t port);

struct IpPort {
  Ipv6 ip{};
  std::uint16_t port = 0;
  friend bool operator==(const IpPort&, const IpPort&) = default;
};
// REQUIRES an address of AF_INET or AF_INET6.
IpPort from_sockaddr(const sockaddr* address);

}  // namespace weft::net
