// The receiving half of UdpSocket: runs of packets and the control data of each.
#include <arpa/inet.h>
#include <netinet/udp.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "os/socket_options.h"
#include "os/udp_socket.h"

namespace weft::os {
namespace {

constexpr std::size_t kControlBytes = 128;
struct Envelope {
  iovec piece;
  sockaddr_in6 name;  // large enough for IPv4 and IPv6
  alignas(cmsghdr) std::array<char, kControlBytes> control;

  void address(msghdr& m, std::byte* to) {
    piece = {to, UdpSocket::kRunBytes};
    m.msg_name = &name;
    m.msg_namelen = sizeof(name);
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    m.msg_control = control.data();
    m.msg_controllen = kControlBytes;
  }
};

void read_control(const cmsghdr& c, UdpSocket::Incoming& run) {
  int value = 0;
  const std::size_t size = std::min<std::size_t>(c.cmsg_len - CMSG_LEN(0), sizeof(value));
  std::memcpy(&value, CMSG_DATA(&c), size);
  if (c.cmsg_level == SOL_UDP && c.cmsg_type == UDP_GRO && value > 0)
    run.segment = static_cast<std::uint32_t>(value);
  if (c.cmsg_level == SOL_SOCKET && c.cmsg_type == SO_RXQ_OVFL)
    run.overflow = static_cast<std::uint32_t>(value);
  const bool tos = (c.cmsg_level == IPPROTO_IP && c.cmsg_type == IP_TOS) ||
                   (c.cmsg_level == IPPROTO_IPV6 && c.cmsg_type == IPV6_TCLASS);
  if (tos) run.traffic_class = static_cast<std::uint8_t>(value);
  if (c.cmsg_level == IPPROTO_IPV6 && c.cmsg_type == IPV6_FLOWINFO)
    run.flow_label = ntohl(static_cast<std::uint32_t>(value)) & kFlowLabelMask;
}

void read_envelope(msghdr& m, std::size_t size, UdpSocket::Incoming& run) {
  run = {};
  const IpPort from = from_sockaddr(static_cast<const sockaddr*>(m.msg_name));
  run.from = from.ip;
  run.port = from.port;
  run.size = run.segment = static_cast<std::uint32_t>(size);
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) read_control(*c, run);
}

}  // namespace

// Uses recvmsg(), which costs less than recvmmsg() when at most one run is there, as in most polls.
bool UdpSocket::receive_one(std::span<std::byte> buffer, Incoming& run) {
  Envelope envelope;
  msghdr message;
  message.msg_flags = 0;
  envelope.address(message, buffer.data());
  const ssize_t size = recvmsg(fd_, &message, MSG_DONTWAIT);
  if (size < 0) return false;
  read_envelope(message, static_cast<std::size_t>(size), run);
  return true;
}

std::size_t UdpSocket::receive(std::span<std::byte> buffer, std::span<Incoming> runs) {
  constexpr std::size_t kBatch = 16;
  const std::size_t count = std::min({runs.size(), buffer.size() / kRunBytes, std::size_t{kBatch}});
  if (count == 1) return receive_one(buffer, runs[0]) ? 1 : 0;
  std::array<mmsghdr, kBatch> messages;
  std::array<Envelope, kBatch> envelopes;
  for (std::size_t i = 0; i < count; ++i) {
    messages[i].msg_hdr.msg_flags = 0;
    envelopes[i].address(messages[i].msg_hdr, buffer.data() + i * kRunBytes);
  }
  const int got =
      recvmmsg(fd_, messages.data(), static_cast<unsigned>(count), MSG_DONTWAIT, nullptr);
  if (got <= 0) return 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i)
    read_envelope(messages[i].msg_hdr, messages[i].msg_len, runs[i]);
  return static_cast<std::size_t>(got);
}

}  // namespace weft::os
