#include "raw_frame.h"

#include "base/assert.h"
#include "os/address.h"
#include "wire/frame.h"
#include "wire/icrc.h"

namespace weft::mrc_test {
namespace {

using base::store16;
using base::store32;
using base::store8;

constexpr std::size_t kEthernet = 14, kIpv6 = 40, kIpv4 = 20, kUdp = 8, kIcrc = 4, kSrh = 24;

void store_udp(Bytes out, std::size_t size) {
  store16(out, 0, kRawSourcePort);
  store16(out, 2, wire::kUdpPort);
  store16(out, 4, static_cast<std::uint32_t>(size));
}

void append(Buffer& out, const Buffer& more) { out.insert(out.end(), more.begin(), more.end()); }

}  // namespace

Buffer raw_frame(const RawFrame& content) {
  const std::size_t udp_size = kUdp + content.payload.size();
  Buffer out(kEthernet + kIpv6 + kUdp);
  store16(out, 12, 0x86dd);
  const Bytes ip = Bytes(out).subspan(kEthernet);
  store32(ip, 0, 6u << 28 | content.dscp << 22);
  store16(ip, 4, static_cast<std::uint32_t>(udp_size));
  store8(ip, 6, 17);
  store8(ip, 7, 64);
  store8(ip, 23, 1);
  store8(ip, 39, 2);
  store_udp(ip.subspan(kIpv6), udp_size);
  append(out, content.payload);
  return out;
}

Buffer ipv4_frame(const Buffer& header, Ipv4Icrc which) {
  const std::size_t udp_size = kUdp + header.size() + kIcrc;
  Buffer out(kEthernet + kIpv4 + kUdp);
  store16(out, 12, 0x0800);
  const Bytes ip = Bytes(out).subspan(kEthernet);
  constexpr std::uint32_t kFrom = 0x7f000101, kTo = 0x7f000201;
  store8(ip, 0, 0x45);
  store16(ip, 2, static_cast<std::uint32_t>(kIpv4 + udp_size));
  store16(ip, 4, 0x1234);
  store8(ip, 8, 64);
  store8(ip, 9, 17);
  store32(ip, 12, kFrom);
  store32(ip, 16, kTo);
  store_udp(ip.subspan(kIpv4), udp_size);
  wire::Icrc icrc = which == Ipv4Icrc::kMapped
                        ? wire::Icrc({.source = base::ipv4(kFrom),
                                      .destination = base::ipv4(kTo),
                                      .source_port = kRawSourcePort,
                                      .destination_port = wire::kUdpPort,
                                      .udp_size = static_cast<std::uint16_t>(udp_size)})
                        : wire::Icrc(ip);
  icrc.add_header(header);
  Buffer trailer(kIcrc);
  icrc.store(trailer);
  if (which == Ipv4Icrc::kWrong) trailer[0] ^= std::byte{1};
  append(out, header);
  append(out, trailer);
  return out;
}

Buffer with_srh(const Buffer& frame) {
  WEFT_ASSERT(frame.size() > kEthernet + 2 * kIpv6);
  const auto inner = frame.begin() + kEthernet + kIpv6;
  Buffer out(frame.begin(), inner);
  const Bytes ip = Bytes(out).subspan(kEthernet);
  store16(ip, 4, base::load16(ip, 4) + kSrh);
  store8(ip, 6, 43);
  Buffer srh(kSrh);
  store8(srh, 0, 41);  // next header: IPv6
  store8(srh, 1, kSrh / 8 - 1);
  store8(srh, 2, 4);  // routing type: segment routing
  std::copy(ip.begin() + 24, ip.begin() + 40, srh.begin() + 8);
  append(out, srh);
  out.insert(out.end(), inner, frame.end());
  return out;
}

}  // namespace weft::mrc_test
