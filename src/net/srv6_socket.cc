#include "net/srv6_socket.h"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <linux/filter.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/assert.h"
#include "net/srv6_packet.h"
#include "os/interfaces.h"
#include "os/socket_options.h"
#include "os/system_error.h"
#include "wire/ip_layout.h"

namespace weft::net {
namespace {

constexpr std::size_t kPacketsMax = 64;  // packets in one system call
constexpr std::size_t kPiecesMax = 6;    // pieces of memory in one packet

bool attach(int fd, std::span<sock_filter> code) {
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

// Every raw socket of the host gets every packet, so a filter passes only UDP packets to `port`.
bool take_only(int fd, std::uint16_t port) {
  std::array<sock_filter, 6> code = {
      sock_filter BPF_STMT(BPF_LD | BPF_B | BPF_ABS, wire::ipv6_at::kNextHeader),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, wire::kNextHeaderUdp, 0, 3),
      sock_filter BPF_STMT(BPF_LD | BPF_H | BPF_ABS,
                           wire::kIpv6Size + wire::udp_at::kDestinationPort),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, 0xffff'ffff),
      sock_filter BPF_STMT(BPF_RET | BPF_K, 0)};
  return attach(fd, code);
}

bool take_nothing(int fd) {
  std::array<sock_filter, 1> code = {sock_filter BPF_STMT(BPF_RET | BPF_K, 0)};
  return attach(fd, code);
}

Result<os::FileDescriptor> open_raw(const Ipv6& address) {
  os::FileDescriptor out(
      socket(AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, wire::kNextHeaderIpv6));
  if (!out.is_open()) {
    if (errno != EPERM && errno != EACCES) return os::system_error("raw IPv6 socket");
    return Error{ErrorKind::kUnsupported,
                 "MRC's own SRv6 form (IPv6 in IPv6) needs CAP_NET_RAW, which this process has "
                 "not; run it as root or give the program `setcap cap_net_raw+ep`"};
  }
  // Until the real filter is attached, no packet may enter the queue.
  if (!take_nothing(out.get())) return os::system_error("socket filter");
  const os::SocketAddress name = os::to_sockaddr(address, 0);
  if (bind(out.get(), reinterpret_cast<const sockaddr*>(&name.storage), name.size) != 0)
    return os::system_error(os::text_of(address) + ": bind of a raw IPv6 socket");
  return out;
}

// The packets of a run as arguments of sendmmsg(): our inner headers, then the caller's pieces.
class Batch {
 public:
  Batch(const Srv6Socket::Outgoing& what, const Ipv6& from)
      : inner_{.source = from,
               .destination = what.to,
               .source_port = what.from_port,
               .destination_port = what.to_port,
               .traffic_class = what.traffic_class,
               .flow_label = what.flow_label},
        name_(os::to_sockaddr(what.carrier, 0)) {
    reinterpret_cast<sockaddr_in6*>(&name_.storage)->sin6_flowinfo = htonl(what.flow_label);
    auto* const header = reinterpret_cast<cmsghdr*>(control_.data());
    const int traffic_class = what.traffic_class;
    header->cmsg_level = IPPROTO_IPV6;
    header->cmsg_type = IPV6_TCLASS;
    header->cmsg_len = CMSG_LEN(sizeof(traffic_class));
    std::memcpy(CMSG_DATA(header), &traffic_class, sizeof(traffic_class));
  }

  // Cuts the pieces into packets of `segment` bytes. False: the run has too many packets.
  bool cut(std::span<const iovec> pieces, std::size_t segment) {
    for (iovec piece : pieces) {
      while (piece.iov_len > 0) {
        if (bytes_ == segment) finish();
        if (bytes_ == 0 && !start()) return false;
        const std::size_t size = std::min(piece.iov_len, segment - bytes_);
        if (used_ == kPiecesMax) return false;
        iovecs_[count_][used_++] = {piece.iov_base, size};
        bytes_ += size;
        piece = {static_cast<std::byte*>(piece.iov_base) + size, piece.iov_len - size};
      }
    }
    finish();
    return true;
  }
  std::span<mmsghdr> messages() { return std::span(messages_).first(count_); }

 private:
  bool start() {
    if (count_ == kPacketsMax) return false;
    iovecs_[count_][0] = {headers_[count_].data(), kInnerHeaderSize};
    used_ = 1;
    return true;
  }
  void finish() {
    if (bytes_ == 0) return;
    emit_inner(inner_, bytes_, headers_[count_]);
    messages_[count_] = {};
    msghdr& m = messages_[count_].msg_hdr;
    m.msg_name = &name_.storage;
    m.msg_namelen = name_.size;
    m.msg_iov = iovecs_[count_].data();
    m.msg_iovlen = used_;
    m.msg_control = control_.data();
    m.msg_controllen = control_.size();
    ++count_;
    bytes_ = used_ = 0;
  }

  InnerPacket inner_;
  os::SocketAddress name_;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control_{};
  std::array<std::array<std::byte, kInnerHeaderSize>, kPacketsMax> headers_;
  std::array<std::array<iovec, kPiecesMax>, kPacketsMax> iovecs_;
  std::array<mmsghdr, kPacketsMax> messages_;
  std::size_t count_ = 0, used_ = 0, bytes_ = 0;
};

}  // namespace

Result<Srv6Socket> Srv6Socket::open(const Options& options) {
  Srv6Socket out;
  out.address_ = options.address;
  WEFT_TRY(out.in_, open_raw(options.end));
  WEFT_TRY(out.out_, open_raw(options.address));
  const int in = out.in_.get(), to = out.out_.get();
  os::set_buffer(in, SO_RCVBUF, SO_RCVBUFFORCE, options.receive_bytes);
  os::set_buffer(to, SO_SNDBUF, SO_SNDBUFFORCE, options.send_bytes);
  os::set_option(in, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
  os::set_option(in, SOL_SOCKET, SO_RXQ_OVFL, 1);
  os::set_option(to, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0);
  os::set_option(to, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1);
  os::set_option(to, IPPROTO_IPV6, IPV6_UNICAST_HOPS, kInnerHopLimit);
  os::never_fragment(to, IPPROTO_IPV6);
  os::set_option(to, IPPROTO_IPV6, IPV6_RECVERR, 1);
  if (!take_only(in, options.port)) return os::system_error("socket filter");
  return out;
}

std::uint32_t Srv6Socket::receive_bytes() const {
  int value = 0;
  socklen_t size = sizeof(value);
  getsockopt(in_.get(), SOL_SOCKET, SO_RCVBUF, &value, &size);
  return static_cast<std::uint32_t>(std::max(value, 0));
}

os::UdpSocket::Sent Srv6Socket::send(const Outgoing& what, std::span<const iovec> pieces) {
  std::size_t size = 0;
  for (const iovec& piece : pieces) size += piece.iov_len;
  Batch batch(what, address_);
  const bool fits = batch.cut(pieces, what.segment == 0 ? size : what.segment);
  WEFT_ASSERT(fits);
  auto left = batch.messages();
  // The kernel reports an ICMP error about an earlier packet once, as the failure of this send. So
  // a failed send is retried once.
  for (int refused = 0; !left.empty();) {
    const int sent = sendmmsg(out_.get(), left.data(), static_cast<unsigned>(left.size()), 0);
    if (sent > 0) {
      left = left.subspan(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EAGAIN || errno == ENOBUFS) return os::UdpSocket::Sent::kNotNow;
    if (++refused == 2) return os::UdpSocket::Sent::kNever;
  }
  return os::UdpSocket::Sent::kTaken;
}

std::size_t Srv6Socket::receive(std::span<std::byte> buffer,
                                std::span<os::UdpSocket::Incoming> runs) {
  constexpr std::size_t kBatch = 16;
  struct Arrival {
    std::array<std::byte, kInnerHeaderSize> headers;
    std::array<iovec, 2> pieces;
    alignas(cmsghdr) std::array<char, 64> control;
  };
  const std::size_t count =
      std::min({runs.size(), buffer.size() / os::UdpSocket::kRunBytes, std::size_t{kBatch}});
  std::array<mmsghdr, kBatch> messages;
  std::array<Arrival, kBatch> arrivals;
  for (std::size_t i = 0; i < count; ++i) {
    Arrival& a = arrivals[i];
    a.pieces[0] = {a.headers.data(), a.headers.size()};
    a.pieces[1] = {buffer.data() + i * os::UdpSocket::kRunBytes, os::UdpSocket::kRunBytes};
    messages[i] = {};
    msghdr& m = messages[i].msg_hdr;
    m.msg_iov = a.pieces.data();
    m.msg_iovlen = a.pieces.size();
    m.msg_control = a.control.data();
    m.msg_controllen = a.control.size();
  }
  const int got =
      recvmmsg(in_.get(), messages.data(), static_cast<unsigned>(count), MSG_DONTWAIT, nullptr);
  if (got <= 0) return 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
    os::UdpSocket::Incoming& run = runs[i];
    run = {};
    msghdr& m = messages[i].msg_hdr;
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
      int value = 0;
      std::memcpy(&value, CMSG_DATA(c), sizeof(value));
      if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)
        run.traffic_class = static_cast<std::uint8_t>(value);
      if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
        run.overflow = static_cast<std::uint32_t>(value);
    }
    const std::size_t size = messages[i].msg_len;
    const auto inner =
        look_inside(ConstBytes(arrivals[i].headers).first(std::min(size, kInnerHeaderSize)));
    if (!inner || !(inner->destination == address_)) continue;
    run.from = inner->source;
    run.port = inner->source_port;
    run.flow_label = inner->flow_label;
    run.size = run.segment = static_cast<std::uint32_t>(size - kInnerHeaderSize);
  }
  return static_cast<std::size_t>(got);
}

std::optional<os::IpPort> Srv6Socket::poll_refusal() const {
  constexpr int kErrorsMax = 64;  // errors read in one call
  for (int i = 0; i < kErrorsMax; ++i) {
    std::array<std::byte, kInnerHeaderSize> quoted;
    iovec piece{quoted.data(), quoted.size()};
    alignas(cmsghdr) std::array<char, 256> control;
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = recvmsg(out_.get(), &message, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (size < 0) return std::nullopt;
    const auto inner = look_inside(ConstBytes(quoted).first(static_cast<std::size_t>(size)));
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != IPPROTO_IPV6 || c->cmsg_type != IPV6_RECVERR ||
          c->cmsg_len < CMSG_LEN(sizeof(sock_extended_err))) {
        continue;
      }
      sock_extended_err error{};
      std::memcpy(&error, CMSG_DATA(c), sizeof(error));
      const bool refused = error.ee_origin == SO_EE_ORIGIN_ICMP6 &&
                           error.ee_type == ICMP6_PARAM_PROB &&
                           error.ee_code == ICMP6_PARAMPROB_NEXTHEADER;
      if (refused && inner) return os::IpPort{inner->destination, inner->destination_port};
    }
  }
  return std::nullopt;
}

}  // namespace weft::net
