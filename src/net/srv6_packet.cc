#include "net/srv6_packet.h"

#include "base/assert.h"
#include "wire/ip_layout.h"

namespace weft::net {
namespace {

using namespace wire;  // the layout tables

constexpr unsigned kTrafficClassShift = ipv6_at::kEcnShift;

}  // namespace

void emit_inner(const InnerPacket& packet, std::size_t payload_size, Bytes out) {
  WEFT_ASSERT(out.size() >= kInnerHeaderSize);
  const auto udp_size = static_cast<std::uint32_t>(kUdpSize + payload_size);
  base::store32(out, ipv6_at::kVersionWord,
                6u << ipv6_at::kVersionShift |
                    std::uint32_t{packet.traffic_class} << kTrafficClassShift |
                    (packet.flow_label & ipv6_at::kFlowLabelMask));
  base::store16(out, ipv6_at::kPayloadSize, udp_size);
  base::store8(out, ipv6_at::kNextHeader, kNextHeaderUdp);
  base::store8(out, ipv6_at::kHopLimit, kInnerHopLimit);
  base::store_ipv6(out, ipv6_at::kSource, packet.source);
  base::store_ipv6(out, ipv6_at::kDestination, packet.destination);
  const Bytes udp = out.subspan(kIpv6Size);
  base::store16(udp, udp_at::kSourcePort, packet.source_port);
  base::store16(udp, udp_at::kDestinationPort, packet.destination_port);
  base::store16(udp, udp_at::kSize, udp_size);
  base::store16(udp, udp_at::kChecksum, 0);
}

std::optional<InnerPacket> look_inside(ConstBytes headers) {
  if (headers.size() < kInnerHeaderSize) return std::nullopt;
  const std::uint32_t word = base::load32(headers, ipv6_at::kVersionWord);
  if (word >> ipv6_at::kVersionShift != 6 ||
      base::load8(headers, ipv6_at::kNextHeader) != kNextHeaderUdp) {
    return std::nullopt;
  }
  const ConstBytes udp = headers.subspan(kIpv6Size);
  return InnerPacket{
      .source = base::load_ipv6(headers, ipv6_at::kSource),
      .destination = base::load_ipv6(headers, ipv6_at::kDestination),
      .source_port = static_cast<std::uint16_t>(base::load16(udp, udp_at::kSourcePort)),
      .destination_port = static_cast<std::uint16_t>(base::load16(udp, udp_at::kDestinationPort)),
      .traffic_class = static_cast<std::uint8_t>(word >> kTrafficClassShift),
      .flow_label = word & ipv6_at::kFlowLabelMask};
}

}  // namespace weft::net
