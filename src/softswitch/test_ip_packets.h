// For tests: whole IPv6 packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/ipv6.h"
#include "softswitch/ip_packet.h"
#include "wire/framing.h"
#include "wire/ip_layout.h"
#include "world/world.h"

namespace weft::softswitch {

struct PacketSpec {
  Ipv6 source{}, destination{};
  world::Dscp dscp = world::Dscp::kTrimmable;
  world::Ecn ecn = world::Ecn::kEct0;
  std::uint16_t source_port = 15'104;
  std::uint32_t flow_label = 0;
  std::size_t payload = 1000;  // bytes of UDP payload
  std::uint8_t fill = 0x5a;
};

inline std::vector<std::byte> make_packet(const PacketSpec& spec) {
  std::vector<std::byte> out(wire::kIpv6Size + wire::kUdpSize + spec.payload, std::byte{spec.fill});
  const Bytes ip(out);
  base::store32(ip, 0,
                6u << wire::ipv6_at::kVersionShift |
                    static_cast<std::uint32_t>(spec.dscp) << wire::ipv6_at::kDscpShift |
                    static_cast<std::uint32_t>(spec.ecn) << wire::ipv6_at::kEcnShift |
                    spec.flow_label);
  const auto udp_size = static_cast<std::uint32_t>(wire::kUdpSize + spec.payload);
  base::store16(ip, wire::ipv6_at::kPayloadSize, udp_size);
  base::store8(ip, wire::ipv6_at::kNextHeader, wire::kNextHeaderUdp);
  base::store8(ip, wire::ipv6_at::kHopLimit, 64);
  base::store_ipv6(ip, wire::ipv6_at::kSource, spec.source);
  base::store_ipv6(ip, wire::ipv6_at::kDestination, spec.destination);
  const Bytes udp = ip.subspan(wire::kIpv6Size);
  base::store16(udp, wire::udp_at::kSourcePort, spec.source_port);
  base::store16(udp, wire::udp_at::kDestinationPort, 4791);
  base::store16(udp, wire::udp_at::kSize, udp_size);
  base::store16(udp, wire::udp_at::kChecksum, 0);
  base::store16(udp, wire::udp_at::kChecksum, udp_checksum(out));
  return out;
}

// Whether the checksum is valid, as a receiving kernel checks: the sum over everything, with the
// checksum, is all ones.
inline bool checksum_holds(ConstBytes packet) {
  const ConstBytes covered = packet.subspan(wire::ipv6_at::kSource);
  std::uint64_t sum = wire::kNextHeaderUdp + packet.size() - wire::kIpv6Size;
  for (std::size_t i = 0; i < covered.size(); ++i)
    sum += std::uint64_t{base::load8(covered, i)} << (i % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

}  // namespace weft::softswitch
