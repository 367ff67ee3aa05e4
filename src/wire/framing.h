// The sizes of a packet on an Ethernet link, framing included. Serialisation times follow from
// them.
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

// BTH.pad: the bytes of padding that extend a payload to a multiple of four.
constexpr std::uint8_t pad_for(std::size_t payload_size) {
  return static_cast<std::uint8_t>(-payload_size & 3);
}

struct PacketShape {
  std::size_t header_size = 0;  // BTH to the last extension header
  std::size_t payload_size = 0;
  bool srv6 = false;     // an outer IPv6 header carries the uSIDs
  bool trimmed = false;  // no payload, no ICRC
};

// The size of the UDP payload: header, payload, padding, ICRC.
constexpr std::size_t datagram_size(PacketShape shape) {
  if (shape.trimmed) return shape.header_size;
  return shape.header_size + shape.payload_size + pad_for(shape.payload_size) + kIcrcSize;
}

// The nominal size of a packet in flight, on any carrier: UDP length + 40. Both ends must count the
// same bytes.
inline constexpr std::size_t kNominalOverhead = 40;
constexpr std::uint32_t nominal_size(PacketShape shape) {
  return static_cast<std::uint32_t>(kUdpSize + datagram_size(shape) + kNominalOverhead);
}

// The bytes from the Ethernet header to the last byte before the FCS, as in a pcap file.
constexpr std::size_t frame_size(PacketShape shape) {
  return kEthernetSize + (shape.srv6 ? 2 : 1) * kIpv6Size + kUdpSize + datagram_size(shape);
}

// The bytes that a packet occupies on the link: frame, FCS, preamble and gap.
constexpr std::size_t wire_size(PacketShape shape) {
  return std::max(frame_size(shape) + kEthernetFcsSize, kEthernetFrameSizeMin) + kEthernetGapSize;
}

static_assert(wire_size({.header_size = 32, .payload_size = 4096}) == 4096 + 122);
static_assert(wire_size({.header_size = 36, .payload_size = 4096}) == 4096 + 126);
static_assert(wire_size({.header_size = 32, .payload_size = 4096, .srv6 = true}) == 4096 + 162);

}  // namespace weft::wire
