// Tester: the suite's own end of a connection, for wire tests. It has plain UDP sockets on MRC's
// port, one for each port of the device, and uses `wire` to build and parse packets. It runs no
// protocol: a test decides every packet that the Tester sends, and sees every packet that arrives.
// Only the device's EV probes and port status updates are answered automatically, so that the
// device keeps its paths.
//
// A socket shows neither Ethernet headers, nor an outer SRv6 header, nor the order of sending, nor
// the IPv4 header. So ICRCs over IPv4 are computed with IPv4-mapped IPv6 addresses, which is the
// form that Weft sends.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "conformance/session.h"
#include "os/udp_socket.h"
#include "wire/packet.h"

namespace weft::conformance {

// A received packet, with its raw bytes.
struct ReceivedPacket {
  wire::Packet packet{};
  std::vector<std::byte> raw;  // the whole UDP payload
  std::size_t header_size = 0;
  std::vector<std::byte> payload;
  std::vector<std::byte> padding;
  std::uint32_t plane = 0;
  std::uint16_t source_port = 0;
  std::uint32_t flow_label = 0;
  std::uint8_t traffic_class = 0;
  bool icrc_full = false,
       // the ICRC is right if it covers the payload; if it covers only headers
      icrc_headers = false;
  Clock::time_point at{};

  const wire::Bth& bth() const { return packet.bth; }
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&packet.body);
  }
  // The EV, from the source port and the low half of the flow label.
  std::uint32_t entropy() const { return std::uint32_t{source_port} << 16 | (flow_label & 0xffff); }
  std::uint64_t path() const { return std::uint64_t{plane} << 32 | entropy(); }
};

class Tester {
 public:
  struct Config {
    std::vector<Ipv6> addresses;  // of the tester, one in each plane
    std::vector<Ipv6> device;     // of the device: one for each plane, or one for all planes
    std::uint16_t port = 4791, device_port = 4791;
    IcrcCover cover = IcrcCover::kFull;
    std::uint8_t dscp_data = 4, dscp_control = 46;
  };
  // Errors: kExhausted if the addresses are in use, kSystem.
  static Result<Tester> open(const Config& config);

  // How a packet is sent, and how it is damaged. Each `sender` has its own UDP source port.
  static constexpr std::uint32_t kSenders = 4;
  struct SendOptions {
    std::uint32_t plane = 0, sender = 0;
    std::optional<std::uint8_t> dscp{};  // not set: the usual DSCP for this kind of packet
    std::uint8_t ecn = 2;                // 2: ECT(0); 3: CE
    bool corrupt_icrc = false;
    std::optional<std::size_t> cut{};  // truncate the datagram to so many bytes
    std::optional<std::pair<std::size_t, std::uint8_t>>
        patch{};  // offset and value: set this byte before the ICRC is computed
    std::optional<std::pair<std::size_t, std::uint8_t>>
        flip{};  // offset and mask: xor this byte after the ICRC is computed
  };
  void send(const wire::Packet& packet, ConstBytes payload, const SendOptions& how);
  void send(const wire::Packet& packet) { send(packet, {}, {}); }
  void send_raw(ConstBytes datagram, const SendOptions& how);
  std::uint16_t source_port(std::uint32_t plane, std::uint32_t sender) const {
    return planes_[plane].senders[sender].port;
  }
  std::uint32_t entropy_of(const SendOptions& how) const {
    return std::uint32_t{source_port(how.plane, how.sender)} << 16;
  }
  std::uint32_t plane_count() const { return static_cast<std::uint32_t>(planes_.size()); }
  const Ipv6& address() const { return config_.addresses[0]; }

  // The next packet of the device; nullopt if none arrives by `until`. Packets that cannot be
  // parsed are counted in `unreadable`.
  std::optional<ReceivedPacket> next(Clock::time_point until);
  std::uint32_t unreadable = 0;
  bool answers_endpoint_requests = true;

 private:
  struct Sender {
    os::UdpSocket socket;
    std::uint16_t port = 0;
  };
  struct Plane {
    os::UdpSocket listen;
    std::array<Sender, kSenders> senders;
  };
  explicit Tester(const Config& config) : config_(config), buffer_(os::UdpSocket::kRunBytes) {}
  Result<void> open_plane(const Ipv6& address);
  void drain(std::uint32_t plane);
  void take(std::uint32_t plane, const os::UdpSocket::Incoming& run, ConstBytes datagram);
  const Ipv6& device_address(std::uint32_t plane) const {
    return config_.device[plane < config_.device.size() ? plane : 0];
  }

  Config config_;
  std::vector<Plane> planes_;
  std::vector<std::byte> buffer_;
  std::deque<ReceivedPacket> waiting_;
};

}  // namespace weft::conformance
