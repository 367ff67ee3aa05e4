// The fields of an IPv6 packet that a switch reads, and the changes that it makes: a CE mark, a
// trim, a new destination address.
//
// After a change the lengths and the UDP checksum are valid for the receiving kernel. A right
// checksum stays right and a wrong checksum stays wrong. A trim is the exception: it removes bytes
// that the checksum covers, so the checksum is computed anew. A checksum of 0 (none) stays 0.
// read_facts() accepts any bytes; the other functions REQUIRE a packet that read_facts() accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/ipv6.h"
#include "world/world.h"

namespace weft::softswitch {

// The bytes that MRC's trim keeps behind the IP header: UDP, BTH, METH, TSETH and RETH
// (docs/wire.md).
inline constexpr std::size_t kTrimmedIpPayload = 44;

struct PacketFacts {
  std::size_t size = 0;  // from the IP header; Ethernet padding may follow
  Ipv6 source{}, destination{};
  world::Dscp dscp{};
  world::Ecn ecn{};
  std::uint32_t entropy = 0;  // UDP or TCP source port, and low half of the flow label
  bool udp = false;           // UDP with consistent lengths; other packets are not trimmed
  ConstBytes datagram{};      // the UDP payload
};

// nullopt: not IPv6, or shorter than the IP header states.
std::optional<PacketFacts> read_facts(ConstBytes packet);

// Sets the ECN bits to CE. Here and below a packet begins with its IP header and has `facts.size`
// bytes.
void mark_ce(Bytes packet);
// Cuts the packet to `keep` bytes behind the IP header and returns its new size, which is never
// larger than the old size. REQUIRES UDP.
struct Trim {
  world::Dscp dscp = world::Dscp::kTrimmed;
  std::size_t keep = kTrimmedIpPayload;
};
std::size_t trim(Bytes packet, const Trim& how);
// Replaces the destination address, and updates the checksum.
void set_destination(Bytes packet, const Ipv6& destination);
// Changes the last byte, which belongs to the ICRC in an MRC packet, and keeps the UDP checksum
// valid, so that the endpoint must detect the damage, not the kernel. A packet that is not UDP
// stays as it is.
void damage(Bytes packet);

// Fills in the UDP or TCP checksum that a sender left to its NIC. Accepts any bytes.
void complete_checksum(Bytes packet);
// The correct UDP checksum of a whole packet. REQUIRES UDP.
std::uint16_t udp_checksum(ConstBytes packet);

}  // namespace weft::softswitch
