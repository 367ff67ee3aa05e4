#include "os/udp_socket.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "os/interfaces.h"
#include "os/socket_options.h"
#include "os/system_error.h"

namespace weft::os {
namespace {

// A packet up to this size is copied into one buffer, which costs less than a list of pieces.
constexpr std::size_t kSmall = 256;
// The upper bound of other_sends_max_, which doubles each time the socket is disconnected.
constexpr std::uint16_t kOtherSendsLimit = 4096;

void set_flow_label(SocketAddress& to, std::uint32_t label) {
  reinterpret_cast<sockaddr_in6*>(&to.storage)->sin6_flowinfo = htonl(label & kFlowLabelMask);
}

// The control messages of one sendmsg() call, with the buffer that holds them.
class Control {
 public:
  template <typename T>
  void add(int level, int type, const T& value) {
    auto* const header = reinterpret_cast<cmsghdr*>(bytes_.data() + size_);
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(sizeof(T));
    std::memcpy(CMSG_DATA(header), &value, sizeof(T));
    size_ += CMSG_SPACE(sizeof(T));
  }
  void attach(msghdr& message) {
    message.msg_control = size_ > 0 ? bytes_.data() : nullptr;
    message.msg_controllen = size_;
  }

 private:
  alignas(cmsghdr) std::array<char, 64> bytes_{};
  std::size_t size_ = 0;
};

}  // namespace

Result<UdpSocket> UdpSocket::open(const Options& options) {
  const bool v4 = base::is_ipv4(options.address);
  UdpSocket out(socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.fd_ < 0) return system_error("socket");
  const int fd = out.fd_;
  set_buffer(fd, SO_RCVBUF, SO_RCVBUFFORCE, options.receive_bytes);
  set_buffer(fd, SO_SNDBUF, SO_SNDBUFFORCE, options.send_bytes);
  if (!v4) {
    set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    // Weft chooses the flow labels, not the kernel.
    set_option(fd, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0);
    set_option(fd, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1);
  }
  never_fragment(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6);
  if (options.receives) {
    set_option(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_RECVTOS : IPV6_RECVTCLASS, 1);
    if (!v4) set_option(fd, IPPROTO_IPV6, IPV6_FLOWINFO, 1);
    set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
    // Without GRO packets are received one by one.
    if (!options.singly) set_option(fd, SOL_UDP, UDP_GRO, 1);
    if (options.any_checksum) set_option(fd, SOL_UDP, UDP_NO_CHECK6_RX, 1);
  }
  if (options.hears_refusals)
    set_option(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_RECVERR : IPV6_RECVERR, 1);
  const SocketAddress address = to_sockaddr(options.address, options.port);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0) {
    const int why = errno;
    if (why == EADDRINUSE) {
      return Error{ErrorKind::kExhausted,
                   fmt::format("UDP port {} of {} is taken; `ss -ulnp` says by whom", options.port,
                               text_of(options.address))};
    }
    if (why == EADDRNOTAVAIL) {
      return Error{ErrorKind::kSystem,
                   fmt::format("no interface here has {} as its address; `ip address` lists those "
                               "that there are",
                               text_of(options.address))};
    }
    return system_error(text_of(options.address) + ": bind", why);
  }
  out.may_connect_ = !options.receives && !options.by_carrier;
  return out;
}

UdpSocket& UdpSocket::operator=(UdpSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(may_connect_, other.may_connect_);
  std::swap(is_connected_, other.is_connected_);
  std::swap(other_sends_, other.other_sends_);
  std::swap(other_sends_max_, other.other_sends_max_);
  std::swap(singly_, other.singly_);
  std::swap(connected_flow_, other.connected_flow_);
  return *this;
}

UdpSocket::~UdpSocket() {
  if (fd_ >= 0) close(fd_);
}

std::uint32_t UdpSocket::receive_bytes() const {
  int value = 0;
  socklen_t size = sizeof(value);
  getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &value, &size);
  return static_cast<std::uint32_t>(std::max(value, 0));
}

void UdpSocket::connect_to(const ConnectedFlow& flow) {
  is_connected_ = false;
  other_sends_ = 0;
  const bool v4 = base::is_ipv4(flow.to);
  SocketAddress to = to_sockaddr(flow.to, flow.port);
  if (!v4) set_flow_label(to, flow.flow_label);
  if (!set_option(fd_, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS,
                  flow.traffic_class))
    return;
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0) return;
  connected_flow_ = flow;
  is_connected_ = true;
}

void UdpSocket::disconnect() {
  is_connected_ = false;
  other_sends_ = 0;
  other_sends_max_ =
      std::min<std::uint16_t>(static_cast<std::uint16_t>(other_sends_max_ * 2), kOtherSendsLimit);
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  // Disconnects the socket, so that it accepts packets from everywhere.
  connect(fd_, &nowhere, sizeof(nowhere));
}

ssize_t UdpSocket::send_connected(std::uint16_t segment, std::span<iovec> pieces) const {
  std::size_t size = 0;
  for (const iovec& piece : pieces) size += piece.iov_len;
  if (segment == 0 && size <= kSmall) {
    // One buffer and no msghdr, so that the kernel has less to copy.
    std::array<std::byte, kSmall> whole;
    std::size_t at = 0;
    for (const iovec& piece : pieces) {
      std::memcpy(whole.data() + at, piece.iov_base, piece.iov_len);
      at += piece.iov_len;
    }
    return ::send(fd_, whole.data(), size, 0);
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  Control control;
  if (segment != 0) control.add(SOL_UDP, UDP_SEGMENT, segment);
  control.attach(message);
  return sendmsg(fd_, &message, 0);
}

UdpSocket::Sent UdpSocket::send_singly(const Outgoing& what, std::span<iovec> pieces) {
  constexpr std::size_t kPiecesMax = 8;
  Outgoing single = what;
  single.segment = 0;
  std::array<iovec, kPiecesMax> packet;
  std::size_t used = 0, bytes = 0;
  const std::size_t last = pieces.size() - 1;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    iovec piece = pieces[i];
    while (piece.iov_len > 0) {
      WEFT_ASSERT(used < packet.size());
      const std::size_t size = std::min<std::size_t>(piece.iov_len, what.segment - bytes);
      packet[used++] = {piece.iov_base, size};
      bytes += size;
      piece = {static_cast<std::byte*>(piece.iov_base) + size, piece.iov_len - size};
      const bool is_end = i == last && piece.iov_len == 0;
      if (bytes < what.segment && !is_end) continue;
      const Sent sent = send(single, std::span(packet).first(used));
      if (sent != Sent::kTaken) return sent;
      used = bytes = 0;
    }
  }
  return Sent::kTaken;
}

ssize_t UdpSocket::send_explicitly(const Outgoing& what, std::span<iovec> pieces) const {
  SocketAddress to = to_sockaddr(what.to, what.port);
  const bool v4 = base::is_ipv4(what.to);
  if (!v4) set_flow_label(to, what.flow_label);
  msghdr message{};
  message.msg_name = &to.storage;
  message.msg_namelen = to.size;
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  Control control;
  control.add(v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS,
              static_cast<int>(what.traffic_class));
  if (what.segment != 0) control.add(SOL_UDP, UDP_SEGMENT, what.segment);
  control.attach(message);
  return sendmsg(fd_, &message, 0);
}

UdpSocket::Sent UdpSocket::send(const Outgoing& what, std::span<iovec> pieces) {
  if (singly_ && what.segment != 0) return send_singly(what, pieces);
  const ConnectedFlow wanted{.to = what.to,
                             .port = what.port,
                             .traffic_class = what.traffic_class,
                             .flow_label = what.flow_label};
  const bool usual = is_connected_ && connected_flow_ == wanted;
  if (usual) {
    other_sends_ = 0;
  } else if (may_connect_) {
    // The kernel reports ICMP errors to a connected socket only about the address that it is
    // connected to. So it is disconnected before a send to another destination, to get the errors
    // of that one too.
    if (is_connected_ && (connected_flow_.to != wanted.to || connected_flow_.port != wanted.port))
      disconnect();
    if (++other_sends_ >= other_sends_max_) connect_to(wanted);
  }
  // The kernel reports an ICMP error about an earlier packet once, as the failure of this send. So
  // a failed send is retried once.
  for (int tries = 0; tries < 2; ++tries) {
    const ssize_t sent =
        usual ? send_connected(what.segment, pieces) : send_explicitly(what, pieces);
    if (sent >= 0) return Sent::kTaken;
    if (errno == EAGAIN || errno == ENOBUFS) return Sent::kNotNow;
  }
  const bool no_runs = errno == EIO || errno == EINVAL || errno == EOPNOTSUPP;
  if (what.segment == 0 || !no_runs) return Sent::kNever;
  singly_ = true;
  return send_singly(what, pieces);
}

std::optional<IpPort> UdpSocket::poll_refusal() const {
  constexpr int kErrorsMax = 64;  // errors read in one call
  for (int i = 0; i < kErrorsMax; ++i) {
    sockaddr_storage to{};
    alignas(cmsghdr) std::array<char, 256> control;
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof(to);
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(fd_, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      const bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR;
      const bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR;
      if ((!v4 && !v6) || c->cmsg_len < CMSG_LEN(sizeof(sock_extended_err))) continue;
      sock_extended_err error{};
      std::memcpy(&error, CMSG_DATA(c), sizeof(error));
      const bool refused =
          v4 ? error.ee_origin == SO_EE_ORIGIN_ICMP && error.ee_type == ICMP_DEST_UNREACH &&
                   error.ee_code == ICMP_PORT_UNREACH
             : error.ee_origin == SO_EE_ORIGIN_ICMP6 && error.ee_type == ICMP6_DST_UNREACH &&
                   error.ee_code == ICMP6_DST_UNREACH_NOPORT;
      if (refused) return from_sockaddr(reinterpret_cast<const sockaddr*>(&to));
    }
  }
  return std::nullopt;
}

}  // namespace weft::os
