// The ICRC: a CRC-32 over what no router may change, by RoCEv2's rules (docs/wire.md).
//
// It starts from the IP and UDP headers with their mutable fields as ones, goes on with the header
// from the BTH (its byte 4 as ones), and ends with payload and padding. With SRv6 the inner IPv6
// header counts: the outer one mutates. A trimmed packet has no valid ICRC.
//
//   Icrc icrc(IcrcFlow{...});
//   icrc.add_header(header);
//   icrc.add(payload);            // as many pieces as there are; then the padding
//   icrc.store(trailer);
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/ipv6.h"

namespace weft::wire {

// The immutable part of IPv6 and UDP: enough where the kernel makes those headers.
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

  // From an IPv4 or IPv6 header and the UDP header behind it, as they are on the wire.
  // REQUIRES at least 8 bytes behind an IP header of 40 (version 6) or IHL * 4 >= 20 bytes (version
  // 4).
  explicit Icrc(ConstBytes ip_and_udp);

  // The header from the BTH on. REQUIRES header.size() >= 12; call it first, and once.
  void add_header(ConstBytes header);
  // What follows: payload and padding, in any number of pieces.
  void add(ConstBytes bytes);

  std::uint32_t value() const { return ~state_; }

  // Four bytes, the least significant first. REQUIRES out.size() >= 4.
  void store(Bytes out) const;
  // Whether these four bytes are the ICRC of what was added. REQUIRES in.size() >= 4.
  bool matches(ConstBytes in) const;

 private:
  std::uint32_t state_;
};

// Icrc(flow) for packets of some flows in turn, as one transfer has them: remembers what it made.
class IcrcStart {
 public:
  Icrc of(const IcrcFlow& flow) {
    Known& known = known_[place_of(flow)];
    if (flow != known.flow) known = {flow, Icrc(flow)};
    return known.start;
  }

 private:
  struct Known {
    IcrcFlow flow{};
    Icrc start{IcrcFlow{}};
  };
  static constexpr std::size_t kKnown = 64;
  // What differs: a few neighbouring ports on each plane, whose addresses differ in one of the last
  // two bytes, and sizes.
  static std::size_t place_of(const IcrcFlow& flow) {
    const std::uint64_t plane = flow.destination.low ^ flow.destination.low >> 8;
    return (flow.source_port + 4 * plane + flow.udp_size) % kKnown;
  }
  std::array<Known, kKnown> known_{};
};

}  // namespace weft::wire
