// Frames that wire::emit_frame does not make: arbitrary bytes behind UDP, IPv4, an SRH.
#pragma once

#include <cstdint>

#include "wire/test_packets.h"

namespace weft::mrc_test {

using wire::test::Buffer;

// A port that no protocol of tshark uses.
inline constexpr std::uint32_t kRawSourcePort = 0xabcd;

// Ethernet, IPv6, UDP to 4791, and these bytes.
struct RawFrame {
  Buffer payload{};
  std::uint32_t dscp = 4;
};
Buffer raw_frame(const RawFrame& content);

// Ethernet, IPv4, UDP to 4791, this header and an ICRC.
enum class Ipv4Icrc { kRoce, kMapped, kWrong };
Buffer ipv4_frame(const Buffer& header, Ipv4Icrc icrc);

// The same frame with an SRH of one segment behind its outer IPv6 header. REQUIRES an SRv6 frame.
Buffer with_srh(const Buffer& frame);

}  // namespace weft::mrc_test
