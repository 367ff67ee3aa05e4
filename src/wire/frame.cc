#include "wire/frame.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "wire/datagram.h"
#include "wire/icrc.h"
#include "wire/ip_layout.h"
#include "wire/layout.h"

namespace weft::wire {

using base::load16;
using base::load32;
using base::load8;
using base::store16;
using base::store32;
using base::store8;

namespace {

struct Ipv6Header {
  Ipv6 source{}, destination{};
  std::uint8_t dscp = 0, ecn = 0, hop_limit = 0, next_header = 0;
  std::uint32_t flow_label = 0;
  std::size_t payload_size = 0;
};

void emit_ipv6(const Ipv6Header& ip, Bytes out) {
  store32(out, ipv6_at::kVersionWord,
          std::uint32_t{6} << ipv6_at::kVersionShift |
              static_cast<std::uint32_t>(ip.dscp) << ipv6_at::kDscpShift |
              static_cast<std::uint32_t>(ip.ecn) << ipv6_at::kEcnShift | ip.flow_label);
  store16(out, ipv6_at::kPayloadSize, static_cast<std::uint32_t>(ip.payload_size));
  store8(out, ipv6_at::kNextHeader, ip.next_header);
  store8(out, ipv6_at::kHopLimit, ip.hop_limit);
  base::store_ipv6(out, ipv6_at::kSource, ip.source);
  base::store_ipv6(out, ipv6_at::kDestination, ip.destination);
}

// REQUIRES in.size() >= kIpv6Size.
Ipv6Header parse_ipv6(ConstBytes in) {
  const std::uint32_t word = load32(in, ipv6_at::kVersionWord);
  return {
      .source = base::load_ipv6(in, ipv6_at::kSource),
      .destination = base::load_ipv6(in, ipv6_at::kDestination),
      .dscp = static_cast<std::uint8_t>(word >> ipv6_at::kDscpShift & 0x3f),
      .ecn = static_cast<std::uint8_t>(word >> ipv6_at::kEcnShift & 0x3),
      .hop_limit = load8(in, ipv6_at::kHopLimit),
      .next_header = load8(in, ipv6_at::kNextHeader),
      .flow_label = word & ipv6_at::kFlowLabelMask,
      .payload_size = load16(in, ipv6_at::kPayloadSize),
  };
}

void store_mac(Bytes out, std::size_t at, const Ipv6& address) {
  store8(out, at, 0x02);
  store8(out, at + 1, static_cast<std::uint32_t>(address.low >> 32));
  store32(out, at + 2, static_cast<std::uint32_t>(address.low));
}

// An IPv6 header and its payload, which ends where the header says.
struct Ipv6Packet {
  Ipv6Header ip{};
  ConstBytes bytes{};    // from the IPv6 header on
  ConstBytes payload{};  // after the IPv6 header
  // The payload is shorter than the header says: some trimming switches do not rewrite the size.
  bool is_cut = false;
};

Result<Ipv6Packet, DropReason> take_ipv6(ConstBytes in) {
  if (in.size() < kIpv6Size) return DropReason::kTooShort;
  if (load8(in, 0) >> 4 != 6) return DropReason::kBadHeader;
  Ipv6Packet packet{.ip = parse_ipv6(in)};
  const std::size_t there = in.size() - kIpv6Size;
  packet.is_cut = there < packet.ip.payload_size;
  packet.bytes = in.first(kIpv6Size + std::min(there, packet.ip.payload_size));
  packet.payload = packet.bytes.subspan(kIpv6Size);
  return packet;
}

bool is_tunnel(const Ipv6Header& ip) {
  return ip.next_header == kNextHeaderIpv6 || ip.next_header == kNextHeaderRouting;
}

// Returns the inner IPv6 packet, after the segment routing header if there is one.
Result<ConstBytes, DropReason> skip_srh(const Ipv6Packet& outer) {
  if (outer.ip.next_header == kNextHeaderIpv6) return outer.payload;
  const ConstBytes srh = outer.payload;
  if (srh.size() < srh_at::kSizeMin) return DropReason::kTooShort;
  if (load8(srh, srh_at::kRoutingType) != srh_at::kTypeSegmentRouting ||
      load8(srh, srh_at::kNextHeader) != kNextHeaderIpv6) {
    return DropReason::kBadHeader;
  }
  const std::size_t size = (std::size_t{load8(srh, srh_at::kWords)} + 1) * 8;
  if (srh.size() < size) return DropReason::kTooShort;
  return srh.subspan(size);
}

bool is_mrc_port(std::uint16_t port) { return port == kUdpPort || port == kUdpPortAlternate; }

// Parses UDP and MRC into `frame`. REQUIRES that the caller has set source, destination and
// `trimmed` of frame.envelope.
Result<Frame, DropReason> parse_udp(const Ipv6Packet& inner, Frame frame) {
  const ConstBytes udp = inner.payload;
  const bool trimmed = frame.envelope.trimmed;
  if (inner.is_cut && !trimmed) return DropReason::kTooShort;
  if (inner.ip.next_header != kNextHeaderUdp) return DropReason::kBadHeader;
  if (udp.size() < kUdpSize) return DropReason::kTooShort;
  frame.envelope.udp_port = load16(udp, udp_at::kDestinationPort);
  if (!is_mrc_port(frame.envelope.udp_port)) return DropReason::kBadHeader;
  if (!trimmed && load16(udp, udp_at::kSize) != udp.size()) return DropReason::kBadHeader;
  frame.envelope.entropy = static_cast<std::uint32_t>(load16(udp, udp_at::kSourcePort)) << 16 |
                           (inner.ip.flow_label & 0xffff);

  WEFT_TRY(const auto parts, split_datagram(udp.subspan(kUdpSize), {.trimmed = trimmed}));
  frame.content = {.header = parts.header, .payload = parts.payload};
  // Only a WRITE can be trimmed. Any other packet has an ICRC, whatever its DSCP says.
  frame.envelope.trimmed = parts.icrc.empty();
  if (!parts.icrc.empty()) {
    Icrc icrc(inner.bytes.first(kIpv6Size + kUdpSize));
    icrc.add_header(parts.header);
    icrc.add(parts.payload);
    icrc.add(parts.padding);
    frame.intact = icrc.matches(parts.icrc);
  }
  return frame;
}

// Writes Ethernet and one or two IPv6 headers. Returns the offset of the inner IPv6 header.
std::size_t emit_outer_headers(const Envelope& envelope, std::size_t udp_size, Bytes out) {
  store_mac(out, ethernet_at::kSource, envelope.source);
  store_mac(out, ethernet_at::kDestination, envelope.destination);
  store16(out, ethernet_at::kType, ethernet_at::kTypeIpv6);
  const Ipv6Header inner = {
      .source = envelope.source,
      .destination = envelope.destination,
      .dscp = envelope.dscp,
      .ecn = envelope.ecn,
      .hop_limit = envelope.hop_limit,
      .next_header = kNextHeaderUdp,
      .flow_label = envelope.entropy & 0xffff,
      .payload_size = udp_size,
  };
  std::size_t inner_at = kEthernetSize;
  if (envelope.usid_destination) {
    Ipv6Header outer = inner;
    outer.destination = *envelope.usid_destination;
    outer.next_header = kNextHeaderIpv6;
    outer.payload_size = kIpv6Size + udp_size;
    emit_ipv6(outer, out.subspan(inner_at));
    inner_at += kIpv6Size;
  }
  emit_ipv6(inner, out.subspan(inner_at));
  return inner_at;
}

void emit_udp(const Envelope& envelope, std::size_t udp_size, Bytes out) {
  store16(out, udp_at::kSourcePort, envelope.entropy >> 16);
  store16(out, udp_at::kDestinationPort, envelope.udp_port);
  store16(out, udp_at::kSize, static_cast<std::uint32_t>(udp_size));
  store16(out, udp_at::kChecksum, 0);
}

std::size_t append(ConstBytes bytes, Bytes out, std::size_t at) {
  std::copy(bytes.begin(), bytes.end(), out.subspan(at).begin());
  return at + bytes.size();
}

}  // namespace

std::size_t emit_frame(const Envelope& envelope, const FrameContent& content, Bytes out) {
  WEFT_ASSERT(content.header.size() >= bth_at::kSize && content.header.size() <= kHeaderSizeMax);
  WEFT_ASSERT(envelope.dscp < 64 && envelope.ecn < 4);
  WEFT_ASSERT(out.size() >= frame_size_max(content.payload.size()));
  static constexpr std::array<std::byte, 3> kPadding{};
  const std::size_t pad = load8(content.header, bth_at::kFlags) >> 4 & 0x3;
  const std::size_t behind_header = envelope.trimmed ? 0 : content.payload.size() + pad + kIcrcSize;
  const std::size_t udp_size = kUdpSize + content.header.size() + behind_header;
  WEFT_ASSERT(udp_size + kIpv6Size <= 0xffff);

  const std::size_t inner_at = emit_outer_headers(envelope, udp_size, out);
  const std::size_t udp_start = inner_at + kIpv6Size;
  emit_udp(envelope, udp_size, out.subspan(udp_start));
  std::size_t at = append(content.header, out, udp_start + kUdpSize);
  if (envelope.trimmed) return at;
  at = append(content.payload, out, at);
  at = append(ConstBytes(kPadding).first(pad), out, at);

  Icrc icrc(out.subspan(inner_at, kIpv6Size + kUdpSize));
  icrc.add_header(content.header);
  icrc.add(content.payload);
  icrc.add(ConstBytes(kPadding).first(pad));
  icrc.store(out.subspan(at, kIcrcSize));
  return at + kIcrcSize;
}

Result<Frame, DropReason> parse_frame(ConstBytes bytes, FrameOptions options) {
  if (bytes.size() < kEthernetSize) return DropReason::kTooShort;
  if (load16(bytes, ethernet_at::kType) != ethernet_at::kTypeIpv6) return DropReason::kBadHeader;
  WEFT_TRY(const auto outer, take_ipv6(bytes.subspan(kEthernetSize)));
  Ipv6Packet inner = outer;
  Frame frame;
  if (is_tunnel(outer.ip)) {
    WEFT_TRY(const auto inside, skip_srh(outer));
    WEFT_TRY(inner, take_ipv6(inside));
    frame.envelope.usid_destination = outer.ip.destination;
  }
  frame.envelope.source = inner.ip.source;
  frame.envelope.destination = inner.ip.destination;
  frame.envelope.dscp = outer.ip.dscp;
  frame.envelope.ecn = outer.ip.ecn == kEcnCe ? kEcnCe : inner.ip.ecn;
  frame.envelope.hop_limit = inner.ip.hop_limit;
  frame.envelope.trimmed = (options.trimmed_dscps >> outer.ip.dscp & 1) != 0;
  if (outer.is_cut && !frame.envelope.trimmed) return DropReason::kTooShort;
  return parse_udp(inner, frame);
}

}  // namespace weft::wire
