#include "wire/icrc.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.h"
#include "wire/crc32.h"
#include "wire/framing.h"
#include "wire/ip_layout.h"
#include "wire/layout.h"
#include "wire/packet.h"

namespace weft::wire {

namespace {

// The register after eight 0xff bytes, which replace the local route header of InfiniBand.
constexpr std::uint32_t kSeed = 0xdebb'20e3;
constexpr std::size_t kIpv4SizeMax = 60;

void set_ones(Bytes out, std::size_t at, std::size_t size) {
  std::memset(out.data() + at, 0xff, size);
}

std::uint32_t start_ipv6(Bytes ip_and_udp) {
  // Sets traffic class and flow label to ones, and keeps the version.
  base::store32(ip_and_udp, ipv6_at::kVersionWord, 0x6fff'ffff);
  set_ones(ip_and_udp, ipv6_at::kHopLimit, 1);
  set_ones(ip_and_udp, kIpv6Size + udp_at::kChecksum, 2);
  return crc32_update(kSeed, ip_and_udp);
}

std::uint32_t start_ipv4(Bytes ip_and_udp, std::size_t ip_size) {
  set_ones(ip_and_udp, ipv4_at::kTos, 1);
  set_ones(ip_and_udp, ipv4_at::kTtl, 1);
  set_ones(ip_and_udp, ipv4_at::kChecksum, 2);
  set_ones(ip_and_udp, ip_size + udp_at::kChecksum, 2);
  return crc32_update(kSeed, ip_and_udp);
}

std::uint32_t start(ConstBytes ip_and_udp) {
  std::array<std::byte, kIpv4SizeMax + kUdpSize> copy;
  WEFT_ASSERT(ip_and_udp.size() >= ipv4_at::kSizeMin + kUdpSize);
  const std::uint32_t version = base::load8(ip_and_udp, 0) >> 4;
  WEFT_ASSERT(version == 4 || version == 6);
  const std::size_t ip_size =
      version == 6 ? kIpv6Size : std::size_t{base::load8(ip_and_udp, 0) & 0xfu} * 4;
  WEFT_ASSERT(ip_size >= ipv4_at::kSizeMin && ip_and_udp.size() >= ip_size + kUdpSize);
  const Bytes masked = Bytes(copy).first(ip_size + kUdpSize);
  std::memcpy(masked.data(), ip_and_udp.data(), masked.size());
  return version == 6 ? start_ipv6(masked) : start_ipv4(masked, ip_size);
}

std::uint32_t start(const IcrcFlow& flow) {
  std::array<std::byte, kIpv6Size + kUdpSize> made;
  const Bytes out(made);
  base::store16(out, ipv6_at::kPayloadSize, flow.udp_size);
  base::store8(out, ipv6_at::kNextHeader, kNextHeaderUdp);
  base::store_ipv6(out, ipv6_at::kSource, flow.source);
  base::store_ipv6(out, ipv6_at::kDestination, flow.destination);
  const Bytes udp = out.subspan(kIpv6Size);
  base::store16(udp, udp_at::kSourcePort, flow.source_port);
  base::store16(udp, udp_at::kDestinationPort, flow.destination_port);
  base::store16(udp, udp_at::kSize, flow.udp_size);
  return start_ipv6(out);
}

}  // namespace

Icrc::Icrc(const IcrcFlow& flow) : state_(start(flow)) {}
Icrc::Icrc(ConstBytes ip_and_udp) : state_(start(ip_and_udp)) {}

void Icrc::add_header(ConstBytes header) {
  WEFT_ASSERT(header.size() >= bth_at::kSize);
  // One call for the whole header where it fits: several short updates cost more than the copy.
  std::array<std::byte, kHeaderSizeMax> copy;
  const std::size_t first = std::min(header.size(), copy.size());
  std::copy_n(header.begin(), first, copy.begin());
  copy[bth_at::kVariant] = std::byte{0xff};
  add(ConstBytes(copy).first(first));
  add(header.subspan(first));
}

void Icrc::add(ConstBytes bytes) { state_ = crc32_update(state_, bytes); }

void Icrc::store(Bytes out) const { base::store32(out, 0, __builtin_bswap32(value())); }

bool Icrc::matches(ConstBytes in) const {
  return __builtin_bswap32(base::load32(in, 0)) == value();
}

}  // namespace weft::wire
