#include "net/udp_socket.h"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IPV6_AUTOFLOWLABEL
#define IPV6_AUTOFLOWLABEL 70
#endif
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif
#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND 33
#endif

namespace weft::net {
namespace {

bool set(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

// As large as the system lets us: beyond its limit only with privilege.
void set_buffer(int fd, int name, int forced, std::uint32_t bytes) {
  if (bytes == 0) return;
  if (!set(fd, SOL_SOCKET, forced, static_cast<int>(bytes)))
    set(fd, SOL_SOCKET, name, static_cast<int>(bytes));
}

Error system_error(const char* what) {
  return {ErrorKind::kSystem, std::string(what) + ": " + std::strerror(errno)};
}

constexpr std::uint32_t kFlowLabelMask = 0xf'ffff;
// Up to that size a packet is sent as one piece.
constexpr std::size_t kSmall = 256;
// Sends to one place in a row that are not by habit, after which they are.
constexpr std::uint8_t kStrangeMax = 16;

void set_flow_label(SocketAddress& to, std::uint32_t label) {
  reinterpret_cast<sockaddr_in6*>(&to.storage)->sin6_flowinfo = htonl(label & kFlowLabelMask);
}

// A control message at a time, in a buffer of its own.
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
  const bool v4 = is_ipv4(options.address);
  UdpSocket out(socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.fd_ < 0) return system_error("socket");
  const int fd = out.fd_;
  set_buffer(fd, SO_RCVBUF, SO_RCVBUFFORCE, options.receive_bytes);
  set_buffer(fd, SO_SNDBUF, SO_SNDBUFFORCE, options.send_bytes);
  if (!v4) {
    set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    // Flow labels are ours to choose, not the system's.
    set(fd, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0);
    set(fd, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1);
  }
  // Never fragmented: a packet is one datagram of the path's MTU.
  set(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER,
      v4 ? IP_PMTUDISC_DO : IPV6_PMTUDISC_DO);
  if (options.receives) {
    set(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_RECVTOS : IPV6_RECVTCLASS, 1);
    if (!v4) set(fd, IPPROTO_IPV6, IPV6_FLOWINFO, 1);
    set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
    set(fd, SOL_UDP, UDP_GRO, 1);  // without it packets come one by one
  }
  const SocketAddress address = to_sockaddr(options.address, options.port);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0) {
    if (errno == EADDRINUSE) return Error{ErrorKind::kExhausted, "the UDP port is taken"};
    return system_error("bind");
  }
  out.may_connect_ = !options.receives;
  return out;
}

UdpSocket& UdpSocket::operator=(UdpSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(may_connect_, other.may_connect_);
  std::swap(has_habit_, other.has_habit_);
  std::swap(strange_, other.strange_);
  std::swap(habit_, other.habit_);
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

void UdpSocket::adopt(const Habit& habit) {
  has_habit_ = false;
  strange_ = 0;
  const bool v4 = is_ipv4(habit.to);
  SocketAddress to = to_sockaddr(habit.to, habit.port);
  if (!v4) set_flow_label(to, habit.flow_label);
  if (!set(fd_, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, habit.traffic_class))
    return;
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0) return;
  habit_ = habit;
  has_habit_ = true;
}

ssize_t UdpSocket::send_by_habit(std::uint16_t segment, std::span<iovec> pieces) const {
  std::size_t size = 0;
  for (const iovec& piece : pieces) size += piece.iov_len;
  if (segment == 0 && size <= kSmall) {
    // One piece and no message header: less for the system to read.
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

ssize_t UdpSocket::send_explicitly(const Outgoing& what, std::span<iovec> pieces) const {
  SocketAddress to = to_sockaddr(what.to, what.port);
  const bool v4 = is_ipv4(what.to);
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
  const Habit wanted{.to = what.to,
                     .port = what.port,
                     .traffic_class = what.traffic_class,
                     .flow_label = what.flow_label};
  const bool usual = has_habit_ && habit_ == wanted;
  if (usual) {
    strange_ = 0;
  } else if (may_connect_ && ++strange_ == kStrangeMax) {
    adopt(wanted);
  }
  // A connected socket tells first what became of an earlier packet (its port was closed): this one
  // has still to be sent.
  for (int tries = 0; tries < 2; ++tries) {
    const ssize_t sent =
        usual ? send_by_habit(what.segment, pieces) : send_explicitly(what, pieces);
    if (sent >= 0) return Sent::kTaken;
    if (errno != ECONNREFUSED) break;
  }
  return errno == EAGAIN || errno == ENOBUFS ? Sent::kNotNow : Sent::kNever;
}

namespace {

constexpr std::size_t kControlBytes = 128;
struct Envelope {
  iovec piece;
  sockaddr_in6 name;  // the larger of the two
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

// Cheaper than a batch of one, and this is how often an empty socket is asked.
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

}  // namespace weft::net
