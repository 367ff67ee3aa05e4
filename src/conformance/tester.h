// Tester: the suite's own end of the wire. Plain UDP sockets at MRC's port, one for each port of the
// device, and packets made and taken apart by `wire`. It follows no protocol: a test decides what it
// sends, and sees every packet that comes. Endpoint requests (EV probes of the device) are answered
// meanwhile, so that the device believes its paths.
//
// What a socket cannot show: the IPv4 header (so ICRCs over IPv4 are checked as between mapped
// addresses, which is what Weft sends), Ethernet, an SRv6 outer header, the order of sending.
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

// A packet that came, as it was.
struct Seen {
  wire::Packet packet{};
  std::vector<std::byte> raw;  // the UDP payload
  std::size_t header_size = 0;
  std::vector<std::byte> payload;
  std::vector<std::byte> padding;
  std::uint32_t plane = 0;
  std::uint16_t source_port = 0;
  std::uint32_t flow_label = 0;
  std::uint8_t traffic_class = 0;
  bool icrc_full = false, icrc_headers = false;  // which reading of the ICRC holds
  Clock::time_point at{};

  const wire::Bth& bth() const { return packet.bth; }
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&packet.body);
  }
  // The EV: source port and the low half of the flow label; the way as one number.
  std::uint32_t entropy() const { return std::uint32_t{source_port} << 16 | (flow_label & 0xffff); }
  std::uint64_t path() const { return std::uint64_t{plane} << 32 | entropy(); }
};

class Tester {
 public:
  struct Config {
    std::vector<Ipv6> addresses;  // ours
    std::vector<Ipv6> device;     // as many, or one
    std::uint16_t port = 4791, device_port = 4791;
    IcrcCover cover = IcrcCover::kFull;
    std::uint8_t dscp_data = 4, dscp_control = 46;
  };
  // Errors: kExhausted when the addresses are taken, kSystem.
  static Result<Tester> open(const Config& config);

  // How a packet leaves. Source ports differ by `sender`.
  static constexpr std::uint32_t kSenders = 4;
  struct Way {
    std::uint32_t plane = 0, sender = 0;
    std::optional<std::uint8_t> dscp{};  // none: as its kind has it
    std::uint8_t ecn = 2;                // ECT(0); 3: CE
    bool spoil_icrc = false;
    std::optional<std::size_t> cut{};  // so many bytes of the datagram and no more
    std::optional<std::pair<std::size_t, std::uint8_t>> patch{};  // this byte, before the ICRC
    std::optional<std::pair<std::size_t, std::uint8_t>> flip{};   // xor this byte, after the ICRC
  };
  void send(const wire::Packet& packet, ConstBytes payload, const Way& way);
  void send(const wire::Packet& packet) { send(packet, {}, {}); }
  void send_raw(ConstBytes datagram, const Way& way);
  std::uint16_t source_port(std::uint32_t plane, std::uint32_t sender) const {
    return planes_[plane].senders[sender].port;
  }
  std::uint32_t entropy_of(const Way& way) const {
    return std::uint32_t{source_port(way.plane, way.sender)} << 16;
  }
  std::uint32_t plane_count() const { return static_cast<std::uint32_t>(planes_.size()); }
  const Ipv6& address() const { return config_.addresses[0]; }

  // The next packet of the device until then; nothing if none comes. What does not parse is counted
  // in `unreadable`.
  std::optional<Seen> next(Clock::time_point until);
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
  std::deque<Seen> waiting_;
};

}  // namespace weft::conformance
