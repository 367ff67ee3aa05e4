// The addresses of a fabric: of a host's port, of a path (SRv6), and of an EV (UDP source port and
// flow label).
//
//   host h, plane p   fd00:<p + 1>::<h + 1>              on the wire hosts and ports count from 1
//   SRv6 path         fd00:0001:<uSID 1> ... :<uSID 6>   F3216: 32-bit block, 16-bit uSIDs, 0 ends
//
// The two kinds cannot be confused: the third group is never 0 in a path (a uSID is not 0), and
// always 0 in the address of a host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ipv6.h"
#include "base/result.h"
#include "fabric/forward.h"
#include "fabric/topology.h"

namespace weft::fabric {

using base::to_text;
// Accepts every form of RFC 4291, without zone or prefix length. The error says what is wrong and
// in which column (from 1).
Result<Ipv6> parse_ipv6(std::string_view text);

// One port of one host: port p connects the host to plane p.
struct HostPort {
  HostIndex host = 0;
  std::uint32_t plane = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// REQUIRES plane < kPlaneCountMax.
Ipv6 address_of(const HostPort& port);
// Empty if this is not the address of a host's port.
std::optional<HostPort> port_of(const Ipv6& address);
// The address with its plane replaced. Works for any address.
// REQUIRES plane < kPlaneCountMax.
Ipv6 with_plane(const Ipv6& address, std::uint32_t plane);

inline constexpr std::uint32_t kUsidBlock = 0xfd00'0001;

// The outer destination that carries this list.
Ipv6 address_of(const UsidList& usids);
// Empty if the block differs, the list is empty, or bits are set after its end.
std::optional<UsidList> usids_of(const Ipv6& address);
// The operation uN of a switch: keeps the block, drops the first uSID and moves the others up. The
// last uSID becomes 0.
Ipv6 shift_usid(const Ipv6& address);

// The fields that carry the 32 bits of an EV. The upper half is the UDP source port. The lower half
// is the low 16 bits of the flow label, whose upper four bits are sent as 0 and ignored.
struct EntropyFields {
  std::uint16_t source_port = 0;
  std::uint32_t flow_label = 0;
  friend bool operator==(const EntropyFields&, const EntropyFields&) = default;
};
constexpr EntropyFields fields_of_entropy(std::uint32_t entropy) {
  return {static_cast<std::uint16_t>(entropy >> 16), entropy & 0xffff};
}
constexpr std::uint32_t entropy_of_fields(const EntropyFields& fields) {
  return std::uint32_t{fields.source_port} << 16 | (fields.flow_label & 0xffff);
}

}  // namespace weft::fabric
