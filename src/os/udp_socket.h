// One UDP socket over IPv4 or IPv6. One system call sends a run of packets (UDP_SEGMENT) or
// receives runs (UDP_GRO), with ECN and DSCP of each. Non-blocking. Knows nothing of MRC.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "os/address.h"

namespace weft::os {

// The bits of the flow label in the first word of an IPv6 header and in sin6_flowinfo.
inline constexpr std::uint32_t kFlowLabelMask = 0xf'ffff;

class UdpSocket {
 public:
  struct Options {
    Ipv6 address{};
    std::uint16_t port = 0;
    std::uint32_t receive_bytes = 0;  // requested, the kernel may grant less; 0: its default
    std::uint32_t send_bytes = 0;
    bool receives = false;        // the socket receives: GRO, ECN and flow label are turned on
    bool singly = false;          // no GRO: another socket must see the packets one by one
    bool any_checksum = false;    // IPv6: accepts packets whose checksum is 0
    bool hears_refusals = false;  // see poll_refusal()
    // Switches rewrite addresses, so ICMP errors match no connected socket.
    bool by_carrier = false;
  };
  // Errors: kExhausted when the port is taken, kSystem otherwise.
  static Result<UdpSocket> open(const Options& options);
  UdpSocket() = default;
  UdpSocket(UdpSocket&& other) noexcept { *this = std::move(other); }
  UdpSocket& operator=(UdpSocket&& other) noexcept;
  ~UdpSocket();

  int fd() const { return fd_; }
  // The receive buffer that the kernel granted: bytes of payload and bookkeeping together.
  std::uint32_t receive_bytes() const;

  struct Outgoing {
    Ipv6 to{};
    std::uint16_t port = 0;
    std::uint8_t traffic_class = 0;  // DSCP and ECN
    std::uint16_t segment = 0;       // bytes of each packet but the last; 0: one packet
    std::uint32_t flow_label = 0;    // IPv6
  };
  // kTaken: the whole run was sent. Otherwise nothing was sent: kNotNow, the send buffer is full;
  // kNever, the run cannot be sent.
  enum class Sent : std::uint8_t { kTaken, kNotNow, kNever };
  // Sends a run of packets. If the kernel cannot segment it (an interface without checksum
  // offload), the packets are sent one by one. If the send buffer then fills up in the middle, the
  // result is kNotNow, and when the caller sends the run once more, its first packets are sent
  // twice.
  Sent send(const Outgoing& what, std::span<iovec> pieces);

  // The destination of a packet whose UDP port is closed, as an ICMP message reported, which may be
  // forged. nullopt: there is no such report. Other ICMP errors in the queue are discarded.
  std::optional<IpPort> poll_refusal() const;

  // One received run: `size` bytes in packets of `segment` bytes; the last packet may be shorter.
  struct Incoming {
    Ipv6 from{};
    std::uint16_t port = 0;
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;
    std::uint32_t size = 0, segment = 0;
    std::uint32_t overflow = 0;  // runs that this socket lost so far because its buffer was full
  };
  // Receives up to runs.size() runs, each into its own kRunBytes of `buffer`. Returns their number.
  static constexpr std::size_t kRunBytes = 65536;
  // The most bytes in a run that is sent.
  static constexpr std::size_t kSendBytesMax = 65'000;
  std::size_t receive(std::span<std::byte> buffer, std::span<Incoming> runs);

 private:
  // The destination and header fields to which the socket is connected, so that a send need not
  // name them.
  struct ConnectedFlow {
    Ipv6 to{};
    std::uint16_t port = 0;
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;
    friend bool operator==(const ConnectedFlow&, const ConnectedFlow&) = default;
  };
  explicit UdpSocket(int fd) : fd_(fd) {}
  void connect_to(const ConnectedFlow& flow);
  void disconnect();
  Sent send_singly(const Outgoing& what, std::span<iovec> pieces);
  bool receive_one(std::span<std::byte> buffer, Incoming& run);
  ssize_t send_connected(std::uint16_t segment, std::span<iovec> pieces) const;
  ssize_t send_explicitly(const Outgoing& what, std::span<iovec> pieces) const;

  int fd_ = -1;
  // False for receiving sockets: a connected socket gets only the packets of one peer.
  bool may_connect_ = false;
  // True: the socket is connected to `connected_flow_`, which saves the kernel a route lookup for each send.
  // A send to another address disconnects it. A destination and header that are used often enough
  // replace it.
  bool is_connected_ = false;
  std::uint16_t other_sends_ = 0;       // consecutive sends elsewhere or with another header
  std::uint16_t other_sends_max_ = 16;  // after this many such sends the socket connects anew
  ConnectedFlow connected_flow_{};
  bool singly_ = false;  // the kernel refused to segment a run
};

}  // namespace weft::os
