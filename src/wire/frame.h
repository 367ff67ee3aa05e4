// Whole Ethernet frames around a packet, for capture files and for links that carry raw frames.
//
//   plain  Ethernet | IPv6 | UDP | header | payload | padding | ICRC
//   SRv6   Ethernet | outer IPv6 to a uSID list [| SRH] | inner IPv6 | UDP | ...
//
// The EV travels as UDP source port (high half) and flow label (low half), in the inner header; the
// outer header repeats the flow label. Emitting writes no SRH and no UDP checksum, and derives MAC
// addresses from the IPv6 addresses (02 and the low five bytes). Parsing skips an SRH and ignores
// the MAC addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/ipv6.h"
#include "base/result.h"
#include "wire/drop_reason.h"
#include "wire/framing.h"
#include "wire/packet.h"

namespace weft::wire {

// The registered port of RoCEv2, and the port printed in the MRC specification. We send to the
// first and accept both.
inline constexpr std::uint16_t kUdpPort = 4791;
inline constexpr std::uint16_t kUdpPortAlternate = 4971;
inline constexpr std::uint8_t kEcnCe = 3;

struct Envelope {
  Ipv6 source{};
  Ipv6 destination{};
  std::uint8_t dscp = 0;  // 6 bits
  std::uint8_t ecn = 0;   // 2 bits
  std::uint8_t hop_limit = 64;
  std::uint16_t udp_port = kUdpPort;  // destination port
  std::uint32_t entropy = 0;
  std::optional<Ipv6> usid_destination{};  // SRv6: the outer destination
  bool trimmed = false;                    // a switch cut the payload: no padding, no ICRC
  friend bool operator==(const Envelope&, const Envelope&) = default;
};

struct FrameContent {
  ConstBytes header{};  // from the BTH on, as emit() wrote it
  ConstBytes
      payload;  // without padding; emit_frame adds BTH.pad bytes. Not written to a trimmed frame
};

// The size of the longest frame with this payload.
constexpr std::size_t frame_size_max(std::size_t payload_size) {
  return frame_size({.header_size = kHeaderSizeMax, .payload_size = payload_size, .srv6 = true}) +
         3;
}

// Writes the frame with ICRC but without FCS, and returns its size.
// REQUIRES that content.header is one whole header (trimmed: at least the BTH), UDP size < 2^16,
// and out.size() >= frame_size_max(content.payload.size()).
std::size_t emit_frame(const Envelope& envelope, const FrameContent& content, Bytes out);

// Spans into the frame that was parsed.
struct Frame {
  Envelope envelope{};
  FrameContent content{};
  bool intact = true;  // the ICRC matches; true for a trimmed frame, which has no ICRC
};

struct FrameOptions {
  // One bit per code point: a frame with such a DSCP was trimmed. 12 and 16 are our defaults.
  std::uint64_t trimmed_dscps = std::uint64_t{1} << 12 | std::uint64_t{1} << 16;
};

// Returns the frame, or why the bytes are not an MRC frame: kTooShort, kBadOpcode, or kBadHeader
// (not IPv6, not UDP to an MRC port, or sizes that contradict each other). In an SRv6 frame the
// DSCP and a CE mark come from the outer header, where switches set them. Bytes after the IPv6
// payload (Ethernet padding) are ignored. The MRC header is not parsed. Never asserts, whatever the
// bytes.
Result<Frame, DropReason> parse_frame(ConstBytes bytes, FrameOptions options = {});

}  // namespace weft::wire
