// The ICRC: a CRC-32 over all fields that no router may change, by the rules of RoCEv2
// (docs/wire.md).
//
// It covers the IP and UDP headers with their mutable fields as ones, the header from the BTH on
// (with byte 4 as ones), the payload and the padding. With SRv6 it covers the inner IPv6 header,
// because switches change the outer one. A trimmed packet has no valid ICRC.
//
//   Icrc icrc(IcrcFlow{...});
//   icrc.add_header(header);
//   icrc.add(payload);            // in any number of pieces; then the padding
//   icrc.store(trailer);
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/ipv6.h"

namespace weft::wire {

// The bytes that an ICRC covers. kFull: headers, payload and padding, as MRC requires. kHeaders:
// headers only, between two ends that rely on another checksum for the payload.
enum class IcrcCover : std::uint8_t { kFull, kHeaders };
constexpr std::string_view to_string(IcrcCover cover) {
  return cover == IcrcCover::kFull ? "full" : "headers";
}

// The immutable fields of IPv6 and UDP. Used where the kernel writes those headers.
struct IcrcFlow {
  Ipv6 source{};
  Ipv6 destination{};
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint16_t udp_size = 0;  // UDP header, MRC header, payload, padding and ICRC
  friend bool operator==(const IcrcFlow&, const IcrcFlow&) = default;
};

class Icrc {
 public:
  explicit Icrc(const IcrcFlow& flow);

  // Starts from an IPv4 or IPv6 header and the UDP header after it, as they are on the wire.
  // REQUIRES at least 8 bytes after an IP header of 40 (version 6) or IHL * 4 >= 20 bytes (version
  // 4).
  explicit Icrc(ConstBytes ip_and_udp);

  // Adds the header from the BTH on. REQUIRES header.size() >= 12, and one call before any add().
  void add_header(ConstBytes header);
  // Adds payload and padding, in any number of pieces.
  void add(ConstBytes bytes);

  std::uint32_t value() const { return ~state_; }

  // Writes the ICRC as four bytes, the least significant first. REQUIRES out.size() >= 4.
  void store(Bytes out) const;
  // True if the first four bytes are the ICRC of everything added. REQUIRES in.size() >= 4.
  bool matches(ConstBytes in) const;

 private:
  std::uint32_t state_;
};

// A cache of Icrc(flow), since one transfer sends packets of a few flows in turn.
class IcrcStart {
 public:
  Icrc of(const IcrcFlow& flow) {
    Known& known = known_[slot_of(flow)];
    if (flow != known.flow) known = {flow, Icrc(flow)};
    return known.start;
  }

 private:
  struct Known {
    IcrcFlow flow{};
    Icrc start{IcrcFlow{}};
  };
  static constexpr std::size_t kKnown = 64;
  // The cache entry of a flow. The flows of one transfer differ in size, in source port (a few
  // neighbouring values), and in plane, which is one of the last two bytes of the address.
  static std::size_t slot_of(const IcrcFlow& flow) {
    const std::uint64_t plane = flow.destination.low ^ flow.destination.low >> 8;
    return (flow.source_port + 4 * plane + flow.udp_size) % kKnown;
  }
  std::array<Known, kKnown> known_{};
};

}  // namespace weft::wire
