// What a switch reads of an IPv6 packet, and what it writes: a CE mark, a trim, the next address.
//
// Whatever is written leaves lengths and the UDP checksum as the receiving kernel wants them. A
// checksum that was right stays right and one that was wrong stays wrong, except where a trim cuts
// away what it was made over: then it is made anew. A checksum of 0 (none) stays 0. Any bytes may
// be looked at; the other functions want a packet that look_at() accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/ipv6.h"
#include "world/world.h"

namespace weft::softswitch {

// What a trim leaves behind the IP header in MRC: UDP, BTH, METH, TSETH and RETH (docs/wire.md).
inline constexpr std::size_t kTrimmedIpPayload = 44;

struct PacketFacts {
  std::size_t size = 0;  // as its header states: bytes behind it are Ethernet's padding
  Ipv6 source{}, destination{};
  world::Dscp dscp{};
  world::Ecn ecn{};
  std::uint32_t entropy = 0;  // source port (UDP and TCP) and low half of the flow label
  bool udp = false;           // with lengths that agree: only these are trimmed
  ConstBytes datagram{};      // the UDP payload
};

// Nothing: not IPv6, or shorter than it says.
std::optional<PacketFacts> look_at(ConstBytes packet);

// From the IP header on, `facts.size` bytes each.
void mark_ce(Bytes packet);
// Cuts it to `keep` bytes behind the IP header. REQUIRES UDP. Returns the new size, never larger than
// the old one.
struct Trim {
  world::Dscp dscp = world::Dscp::kTrimmed;
  std::size_t keep = kTrimmedIpPayload;
};
std::size_t trim(Bytes packet, const Trim& how);
// Gives it another destination.
void readdress(Bytes packet, const Ipv6& destination);
// Damages the last byte, which is the ICRC's in an MRC packet, and lets the UDP checksum hold: the
// damage is for the endpoint to find, not for the kernel. Nothing happens to what is not UDP.
void damage(Bytes packet);

// Fills in what a sender left to its NIC: the checksum of UDP or TCP. Any bytes.
void complete_checksum(Bytes packet);
// The UDP checksum as it should be, for whole packets. REQUIRES UDP.
std::uint16_t udp_checksum(ConstBytes packet);

}  // namespace weft::softswitch
