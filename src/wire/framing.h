// What a packet costs on an Ethernet link, framing included: the numbers that serialisation times
// come from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weft::wire {

inline constexpr std::size_t kEthernetSize = 14;
inline constexpr std::size_t kEthernetFcsSize = 4;
inline constexpr std::size_t kEthernetGapSize = 20;       // preamble 8 and inter-packet gap 12
inline constexpr std::size_t kEthernetFrameSizeMin = 64;  // FCS included, preamble and gap not
inline constexpr std::size_t kIpv6Size = 40;
inline constexpr std::size_t kUdpSize = 8;
inline constexpr std::size_t kIcrcSize = 4;

// Bytes of padding that bring a payload to a multiple of four: BTH.pad.
constexpr std::uint8_t pad_for(std::size_t payload_size) {
  return static_cast<std::uint8_t>(-payload_size & 3);
}

struct PacketShape {
  std::size_t header_size = 0;  // BTH to the last extension header
  std::size_t payload_size = 0;
  bool srv6 = false;     // an outer IPv6 header carries the uSIDs
  bool trimmed = false;  // no payload, no ICRC
};

// The UDP payload: header, payload, padding, ICRC.
constexpr std::size_t datagram_size(PacketShape shape) {
  if (shape.trimmed) return shape.header_size;
  return shape.header_size + shape.payload_size + pad_for(shape.payload_size) + kIcrcSize;
}

// What both ends count for a packet in flight, whatever carries it: UDP length + 40.
inline constexpr std::size_t kNominalOverhead = 40;
constexpr std::uint32_t nominal_size(PacketShape shape) {
  return static_cast<std::uint32_t>(kUdpSize + datagram_size(shape) + kNominalOverhead);
}

// Ethernet header to the last byte before the FCS: what a pcap file holds.
constexpr std::size_t frame_size(PacketShape shape) {
  return kEthernetSize + (shape.srv6 ? 2 : 1) * kIpv6Size + kUdpSize + datagram_size(shape);
}

// The time on the link in bytes: the frame, FCS, preamble and gap.
constexpr std::size_t wire_size(PacketShape shape) {
  return std::max(frame_size(shape) + kEthernetFcsSize, kEthernetFrameSizeMin) + kEthernetGapSize;
}

static_assert(wire_size({.header_size = 32, .payload_size = 4096}) == 4096 + 122);
static_assert(wire_size({.header_size = 36, .payload_size = 4096}) == 4096 + 126);
static_assert(wire_size({.header_size = 32, .payload_size = 4096, .srv6 = true}) == 4096 + 162);

}  // namespace weft::wire
