#include "os/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstring>

namespace weft::os {

Result<Ipv6> parse_address(const std::string& text) {
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return base::ipv4(ntohl(v4.s_addr));
  std::array<std::byte, kIpv6AddressSize> v6;
  if (inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) return base::load_ipv6(v6, 0);
  return Error{ErrorKind::kInvalid,
               text + ": not an address; expected IPv4 or IPv6, as 10.0.1.7 or fd00:1::7"};
}

SocketAddress to_sockaddr(const Ipv6& ip, std::uint16_t port) {
  SocketAddress out;
  if (base::is_ipv4(ip)) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    in.sin_addr.s_addr = htonl(static_cast<std::uint32_t>(ip.low));
    std::memcpy(&out.storage, &in, sizeof(in));
    out.size = sizeof(in);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::array<std::byte, kIpv6AddressSize> bytes;
    base::store_ipv6(bytes, 0, ip);
    std::memcpy(&in.sin6_addr, bytes.data(), bytes.size());
    std::memcpy(&out.storage, &in, sizeof(in));
    out.size = sizeof(in);
  }
  return out;
}

IpPort from_sockaddr(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, address, sizeof(in));
    return {.ip = base::ipv4(ntohl(in.sin_addr.s_addr)), .port = ntohs(in.sin_port)};
  }
  sockaddr_in6 in;
  std::memcpy(&in, address, sizeof(in));
  std::array<std::byte, kIpv6AddressSize> bytes;
  std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
  return {.ip = base::load_ipv6(bytes, 0), .port = ntohs(in.sin6_port)};
}

}  // namespace weft::os
