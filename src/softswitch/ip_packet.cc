#include "softswitch/ip_packet.h"

#include <algorithm>

#include "base/assert.h"
#include "wire/framing.h"
#include "wire/ip_layout.h"

namespace weft::softswitch {
namespace {

using base::load16;
using base::load32;
using base::load8;
using base::store16;
using base::store32;

constexpr std::uint8_t kNextHeaderTcp = 6;
constexpr std::size_t kUdpAt = wire::kIpv6Size;
constexpr std::size_t kTcpChecksumAt = kUdpAt + 16;
constexpr std::size_t kChecksumAt = kUdpAt + wire::udp_at::kChecksum;
constexpr std::uint32_t kDscpMask = 0x3fu << wire::ipv6_at::kDscpShift;

// The sum of all 16-bit words, added 32 bits at a time; folded() later adds both halves and the
// carries. An odd last byte counts as the upper half of a word.
std::uint64_t sum_of(ConstBytes bytes) {
  std::uint64_t sum = 0;
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) sum += load32(bytes, at);
  for (; at + 2 <= bytes.size(); at += 2) sum += load16(bytes, at);
  if (at < bytes.size()) sum += std::uint64_t{load8(bytes, at)} << 8;
  return sum;
}

std::uint32_t folded(std::uint64_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint32_t>(sum);
}

// The UDP or TCP checksum: the sum over the addresses and the bytes behind the IP header, except
// the checksum field at `field`. A result of 0 is sent as 0xffff, because 0 means "no checksum".
std::uint16_t checksum_at(ConstBytes packet, std::size_t field) {
  const ConstBytes behind = packet.subspan(kUdpAt);
  std::uint64_t sum = sum_of(packet.subspan(wire::ipv6_at::kSource, 2 * kIpv6AddressSize));
  sum += behind.size() + load8(packet, wire::ipv6_at::kNextHeader) + sum_of(behind);
  // The subtraction cannot underflow, because the field's value is a part of the sum.
  const std::uint32_t checksum = ~folded(sum - load16(packet, field)) & 0xffff;
  return static_cast<std::uint16_t>(checksum == 0 ? 0xffff : checksum);
}

bool is_udp(ConstBytes packet) {
  return load8(packet, wire::ipv6_at::kNextHeader) == wire::kNextHeaderUdp &&
         packet.size() >= kUdpAt + wire::kUdpSize &&
         load16(packet, kUdpAt + wire::udp_at::kSize) == packet.size() - kUdpAt;
}

// Updates the UDP checksum by RFC 1624: subtracts the old words and adds the new words. A result of
// 0 is sent as 0xffff, because 0 means "no checksum".
void update_checksum(Bytes packet, std::uint64_t old_sum, std::uint64_t new_sum) {
  const std::uint32_t checksum = load16(packet, kChecksumAt);
  if (checksum == 0) return;
  const std::uint32_t sum = folded((~checksum & 0xffff) + (~folded(old_sum) & 0xffff) + new_sum);
  store16(packet, kChecksumAt, sum == 0xffff ? 0xffff : ~sum & 0xffff);
}

}  // namespace

std::optional<PacketFacts> read_facts(ConstBytes packet) {
  if (packet.size() < wire::kIpv6Size || load8(packet, 0) >> 4 != 6) return std::nullopt;
  const std::size_t size = wire::kIpv6Size + load16(packet, wire::ipv6_at::kPayloadSize);
  if (size > packet.size()) return std::nullopt;
  packet = packet.first(size);
  const std::uint32_t word = load32(packet, wire::ipv6_at::kVersionWord);
  PacketFacts facts{
      .size = size,
      .source = base::load_ipv6(packet, wire::ipv6_at::kSource),
      .destination = base::load_ipv6(packet, wire::ipv6_at::kDestination),
      .dscp = static_cast<world::Dscp>((word & kDscpMask) >> wire::ipv6_at::kDscpShift),
      .ecn = static_cast<world::Ecn>(word >> wire::ipv6_at::kEcnShift & 3),
      .entropy = word & 0xffff,
      .udp = is_udp(packet)};
  const std::uint8_t next = load8(packet, wire::ipv6_at::kNextHeader);
  const bool has_ports = next == wire::kNextHeaderUdp || next == kNextHeaderTcp;
  if (has_ports && size >= kUdpAt + 2) facts.entropy |= std::uint32_t{load16(packet, kUdpAt)} << 16;
  if (facts.udp) facts.datagram = packet.subspan(kUdpAt + wire::kUdpSize);
  return facts;
}

void mark_ce(Bytes packet) {
  const std::uint32_t word = load32(packet, wire::ipv6_at::kVersionWord);
  store32(packet, wire::ipv6_at::kVersionWord, word | 3u << wire::ipv6_at::kEcnShift);
}

std::size_t trim(Bytes packet, const Trim& how) {
  WEFT_ASSERT(is_udp(packet));
  const std::uint32_t word = load32(packet, wire::ipv6_at::kVersionWord) & ~kDscpMask;
  store32(packet, wire::ipv6_at::kVersionWord,
          word | static_cast<std::uint32_t>(how.dscp) << wire::ipv6_at::kDscpShift);
  const std::size_t size = std::min(packet.size(), wire::kIpv6Size + how.keep);
  if (size == packet.size()) return size;
  store16(packet, wire::ipv6_at::kPayloadSize, static_cast<std::uint32_t>(size - kUdpAt));
  store16(packet, kUdpAt + wire::udp_at::kSize, static_cast<std::uint32_t>(size - kUdpAt));
  const Bytes left = packet.first(size);
  if (load16(left, kChecksumAt) != 0) store16(left, kChecksumAt, udp_checksum(left));
  return size;
}

void set_destination(Bytes packet, const Ipv6& destination) {
  const ConstBytes field = packet.subspan(wire::ipv6_at::kDestination, kIpv6AddressSize);
  const std::uint64_t before = sum_of(field);
  base::store_ipv6(packet, wire::ipv6_at::kDestination, destination);
  if (is_udp(packet)) update_checksum(packet, before, sum_of(field));
}

void damage(Bytes packet) {
  if (!is_udp(packet) || packet.size() == kUdpAt + wire::kUdpSize) return;
  const std::size_t last = packet.size() - 1;
  const bool upper = (last - kUdpAt) % 2 == 0;  // which half of its word the last byte is
  const auto word_of = [&] { return std::uint64_t{load8(packet, last)} << (upper ? 8 : 0); };
  const std::uint64_t before = word_of();
  // Adds one instead of flipping a bit, so that a packet damaged twice is still damaged.
  base::store8(packet, last, load8(packet, last) + 1u);
  update_checksum(packet, before, word_of());
}

std::uint16_t udp_checksum(ConstBytes packet) { return checksum_at(packet, kChecksumAt); }

void complete_checksum(Bytes packet) {
  const auto facts = read_facts(packet);
  if (!facts) return;
  packet = packet.first(facts->size);
  const std::uint8_t next = load8(packet, wire::ipv6_at::kNextHeader);
  if (facts->udp) {
    store16(packet, kChecksumAt, checksum_at(packet, kChecksumAt));
  } else if (next == kNextHeaderTcp && facts->size >= kTcpChecksumAt + 2) {
    store16(packet, kTcpChecksumAt, checksum_at(packet, kTcpChecksumAt));
  }
}

}  // namespace weft::softswitch
