// IP addresses as text and as the kernel's sockaddr. IPv4 addresses are kept as ::ffff:a.b.c.d.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/ipv6.h"
#include "base/result.h"

namespace weft::os {

// Parses "127.0.1.1" or "fd00:1::7". Errors: kInvalid, with the expected form.
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

}  // namespace weft::os
