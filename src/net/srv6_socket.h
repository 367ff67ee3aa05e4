// Srv6Socket: packets of MRC's own SRv6 form, IPv6 in IPv6, in and out of one plane.
//
//   outer IPv6 to a uSID carrier | inner IPv6 to the peer's address | UDP, checksum 0 | datagram
//
// Raw sockets of the protocol "IPv6": the kernel writes the outer header, finds the next hop and
// answers for neighbours, and hands over whole inner packets at the end of the uSIDs; nothing is to
// be set up at the receiver but the address that they lead to. Linux cuts no runs of such packets
// (docs/decisions/0020): each is one of its own, though many leave in one system call. Needs
// CAP_NET_RAW. Non-blocking; knows nothing of MRC beyond its UDP ports.
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
    Ipv6 address{};          // ours, as peers know it: the source of both headers
    Ipv6 end{};              // ours, where uSIDs lead to
    std::uint16_t port = 0;  // UDP, of the inner packets that are taken
    std::uint32_t receive_bytes = 0, send_bytes = 0;  // asked for, as of a UdpSocket
  };
  // Errors: kUnsupported without the privilege, kSystem.
  static Result<Srv6Socket> open(const Options& options);

  int receive_fd() const { return in_.get(); }
  int send_fd() const { return out_.get(); }
  // What the system really gave.
  std::uint32_t receive_bytes() const;

  struct Outgoing {
    Ipv6 carrier{}, to{};  // of the outer and of the inner header
    std::uint16_t from_port = 0, to_port = 0;
    std::uint8_t traffic_class = 0;  // these two of both headers
    std::uint32_t flow_label = 0;
    std::size_t segment = 0;  // bytes of each packet but the last; 0: one packet
  };
  // As UdpSocket::send(); if the buffer is full half-way, some are sent twice.
  os::UdpSocket::Sent send(const Outgoing& what, std::span<const iovec> pieces);

  // As UdpSocket::receive(), one packet each: what the inner headers say, but the traffic class of
  // the outer one, where switches write. What is no such packet has size 0.
  std::size_t receive(std::span<std::byte> buffer, std::span<os::UdpSocket::Incoming> runs);

  // A host said that it takes no such packets: no process there has these sockets open any more.
  std::optional<os::IpPort> poll_refusal() const;

 private:
  Ipv6 address_{};
  os::FileDescriptor in_, out_;
};

}  // namespace weft::net
