// Chooses the addresses of the tester and the device.
#include <algorithm>
#include <bit>

#include "conformance/duel.h"
#include "os/address.h"

namespace weft::conformance {
namespace {

// The UDP port of the Weft process with this QP number. Processes of one host share its addresses,
// and bits 23 to 16 of a QP number select the process's UDP port.
std::uint16_t weft_port(std::uint32_t qpn) {
  const std::uint32_t slot = qpn >> 16;
  return static_cast<std::uint16_t>(slot == 0 ? 4791 : 14'791 + slot);
}

Ipv6 ip_of(const ibv_gid& gid) {
  std::array<std::byte, 16> bytes;
  std::memcpy(bytes.data(), gid.raw, bytes.size());
  return base::load_ipv6(bytes, 0);
}

std::uint32_t ports_of(const Host& host) {
  mrc_ctl_device_attr attr{};
  if (host.library.mrc_ctl_query_device(host.verbs, &attr) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(std::popcount(attr.phy_port_mask), 1));
}

}  // namespace

Tester open_tester(Session& session, const Host& host, std::uint32_t device_qpn, IcrcCover cover) {
  const Options& options = session.options();
  const Ipv6 gid = ip_of(host.gid);
  const bool loopback = base::is_ipv4(gid) && base::is_loopback(gid);
  Tester::Config config{.addresses = options.tester_addresses,
                        .device = options.device_addresses,
                        .port = options.tester_port,
                        .device_port = options.device_port,
                        .cover = cover,
                        .dscp_data = options.dscp_data,
                        .dscp_control = options.dscp_control};
  if (config.device_port == 0) config.device_port = loopback ? weft_port(device_qpn) : 4791;
  if (config.device.empty()) {
    config.device = {gid};
    // On the loopback, port p of a Weft device has the address 127.0.p.1.
    for (std::uint32_t p = 1; loopback && p < ports_of(host); ++p)
      config.device.push_back({.high = gid.high, .low = gid.low + (std::uint64_t{p} << 8)});
  }
  if (!config.addresses.empty()) {
    auto opened = Tester::open(config);
    if (!opened) throw SuiteError{"the tester's addresses: " + opened.error().message};
    return std::move(opened).value();
  }
  if (!loopback) throw Skip{"where the tester is was not said; give --tester and --device-address"};
  // Take the first free address near the device's.
  std::string why;
  for (std::uint64_t last = 2; last < 250; ++last) {
    config.addresses.clear();
    for (const Ipv6& ip : config.device)
      config.addresses.push_back({.high = ip.high, .low = (ip.low & ~std::uint64_t{0xff}) | last});
    auto opened = Tester::open(config);
    if (opened) return std::move(opened).value();
    why = opened.error().message;
    if (opened.error().kind != ErrorKind::kExhausted) break;
  }
  throw SuiteError{"no address for the tester: " + why};
}

}  // namespace weft::conformance
