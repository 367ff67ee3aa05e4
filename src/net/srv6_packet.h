// What is inside a packet of MRC's own SRv6 form: an IPv6 header that says who sent it to whom, and
// UDP. The header around it, which carries the uSIDs, is the kernel's work. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/ipv6.h"
#include "wire/framing.h"

namespace weft::net {

struct InnerPacket {
  Ipv6 source{}, destination{};
  std::uint16_t source_port = 0, destination_port = 0;
  std::uint8_t traffic_class = 0;  // DSCP and ECN
  std::uint32_t flow_label = 0;
  friend bool operator==(const InnerPacket&, const InnerPacket&) = default;
};

inline constexpr std::size_t kInnerHeaderSize = wire::kIpv6Size + wire::kUdpSize;
// As the kernel sets it in the header around this one.
inline constexpr std::uint8_t kInnerHopLimit = 64;

// Both headers for a UDP payload of that size, with a UDP checksum of 0 as MRC has it: the ICRC, or
// the seal, covers the packet. REQUIRES out.size() >= kInnerHeaderSize.
void emit_inner(const InnerPacket& packet, std::size_t payload_size, Bytes out);

// Nothing: it is no UDP over IPv6, or shorter than both headers. The sizes that it states are not
// looked at: a switch may have cut it.
std::optional<InnerPacket> look_inside(ConstBytes headers);

}  // namespace weft::net
