// The inner headers of a packet in MRC's SRv6 form: IPv6 from host to host, and UDP. The kernel
// writes the outer header, which carries the uSIDs. Pure functions.
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
// The hop limit that the kernel sets in the outer header.
inline constexpr std::uint8_t kInnerHopLimit = 64;

// Writes the IPv6 and the UDP header for a UDP payload of `payload_size` bytes. The UDP checksum is
// 0, as MRC requires: the ICRC or the seal covers the packet. REQUIRES out.size() >=
// kInnerHeaderSize.
void emit_inner(const InnerPacket& packet, std::size_t payload_size, Bytes out);

// Parses the IPv6 and the UDP header. nullopt: the bytes are not UDP over IPv6, or too short. The
// length fields are not checked, because a switch may have trimmed the packet.
std::optional<InnerPacket> look_inside(ConstBytes headers);

}  // namespace weft::net
