// Ipv6: an address as two 64-bit halves. The first byte on the wire is the top byte of `high`. An
// IPv4 address is written as ::ffff:a.b.c.d.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace weft {

struct Ipv6 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const Ipv6&, const Ipv6&) = default;
};
inline constexpr std::size_t kIpv6AddressSize = 16;

namespace base {

// REQUIRES at + kIpv6AddressSize <= in.size() (out.size()).
inline Ipv6 load_ipv6(ConstBytes in, std::size_t at) {
  return {.high = load64(in, at), .low = load64(in, at + 8)};
}
inline void store_ipv6(Bytes out, std::size_t at, const Ipv6& address) {
  store64(out, at, address.high);
  store64(out, at + 8, address.low);
}

}  // namespace base
}  // namespace weft
