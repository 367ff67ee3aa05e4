// Srv6Socket: sends and receives the packets of one plane in MRC's SRv6 form, IPv6 in IPv6.
//
//   outer IPv6 to a uSID carrier | inner IPv6 to the peer's address | UDP, checksum 0 | datagram
//
// It uses raw sockets of the protocol "IPv6". The kernel writes the outer header, finds the next
// hop, resolves neighbours, and delivers whole inner packets at the end of the uSID list. The
// receiver only needs the address that the uSIDs lead to. Linux cannot segment runs of such packets
// (docs/decisions/0020), so each packet is a message of its own; many messages leave in one system
// call. Needs CAP_NET_RAW. Non-blocking; knows nothing of MRC beyond its UDP ports.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "os/address.h"
#include "os/file_descriptor.h"
#include "os/udp_socket.h"

namespace weft::net {

class Srv6Socket {
 public:
  struct Options {
    Ipv6 address{};          // our address, as peers know it: the source of both headers
    Ipv6 end{};              // our address where uSID lists end
    std::uint16_t port = 0;  // UDP destination port of the inner packets to receive
    std::uint32_t receive_bytes = 0, send_bytes = 0;  // requested buffer sizes, as for UdpSocket
  };
  // Errors: kUnsupported without the privilege, kSystem.
  static Result<Srv6Socket> open(const Options& options);

  int receive_fd() const { return in_.get(); }
  int send_fd() const { return out_.get(); }
  // The receive buffer that the kernel granted.
  std::uint32_t receive_bytes() const;

  struct Outgoing {
    Ipv6 carrier{}, to{};  // destinations of the outer and of the inner header
    std::uint16_t from_port = 0, to_port = 0;
    std::uint8_t traffic_class = 0;  // this and the flow label are set in both headers
    std::uint32_t flow_label = 0;
    std::size_t segment = 0;  // bytes of each packet except the last; 0: one packet
  };
  // As UdpSocket::send(). If the send buffer fills up in the middle of a run, the first packets are
  // sent twice.
  os::UdpSocket::Sent send(const Outgoing& what, std::span<const iovec> pieces);

  // As UdpSocket::receive(), but each run is one packet. The fields are those of the inner header,
  // except the traffic class, which is that of the outer header, where switches mark. An invalid
  // packet has size 0.
  std::size_t receive(std::span<std::byte> buffer, std::span<os::UdpSocket::Incoming> runs);

  // The destination of a packet that its host refused: no process there has these sockets open.
  std::optional<os::IpPort> poll_refusal() const;

 private:
  Ipv6 address_{};
  os::FileDescriptor in_, out_;
};

}  // namespace weft::net
