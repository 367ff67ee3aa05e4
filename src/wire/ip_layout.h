// The layout tables of the headers before MRC: Ethernet, IPv4, IPv6, segment routing header, UDP.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::wire {

namespace ethernet_at {
inline constexpr std::size_t kDestination = 0, kSource = 6, kType = 12;
inline constexpr std::uint16_t kTypeIpv6 = 0x86dd;
}  // namespace ethernet_at

namespace ipv4_at {
inline constexpr std::size_t kTos = 1, kTtl = 8, kChecksum = 10, kSizeMin = 20;
}  // namespace ipv4_at

namespace ipv6_at {
inline constexpr std::size_t kVersionWord = 0;  // version[4] dscp[6] ecn[2] flow_label[20]
inline constexpr std::size_t kPayloadSize = 4, kNextHeader = 6, kHopLimit = 7;
inline constexpr std::size_t kSource = 8, kDestination = 24;
inline constexpr unsigned kVersionShift = 28, kDscpShift = 22, kEcnShift = 20;
inline constexpr std::uint32_t kFlowLabelMask = 0xf'ffff;
}  // namespace ipv6_at

// The segment routing header (RFC 8754). Its first fields are the same in every routing header.
namespace srh_at {
inline constexpr std::size_t kNextHeader = 0, kWords = 1, kRoutingType = 2, kSizeMin = 8;
inline constexpr std::uint8_t kTypeSegmentRouting = 4;
}  // namespace srh_at

namespace udp_at {
inline constexpr std::size_t kSourcePort = 0, kDestinationPort = 2, kSize = 4, kChecksum = 6;
}  // namespace udp_at

inline constexpr std::uint8_t kNextHeaderUdp = 17;
inline constexpr std::uint8_t kNextHeaderIpv6 = 41;
inline constexpr std::uint8_t kNextHeaderRouting = 43;

}  // namespace weft::wire
