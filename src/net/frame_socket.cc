#include "net/frame_socket.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

namespace weft::net {
namespace {

constexpr std::uint32_t kNoPort = 0xffff'ffff;
constexpr int kBufferBytes = 16 << 20;
// Interface indices of a namespace are small numbers; one above this is not ours.
constexpr std::size_t kInterfacesMax = 1u << 16;
// A packet that came longer ago was stamped by another clock.
constexpr std::int64_t kAgeMaxNs = 1'000'000'000;

Error system_error(const std::string& what) {
  return {ErrorKind::kSystem, what + ": " + std::strerror(errno)};
}

bool set(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

std::int64_t ns_of(const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

struct Stamps {
  bool checksum_open = false;  // left to the NIC
  std::int64_t came_ns = 0;    // CLOCK_REALTIME; 0: not said
};

Stamps stamps_of(msghdr& message) {
  Stamps out;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
      tpacket_auxdata aux{};
      std::memcpy(&aux, CMSG_DATA(c), sizeof(aux));
      out.checksum_open = (aux.tp_status & TP_STATUS_CSUMNOTREADY) != 0;
    }
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
      timespec t{};
      std::memcpy(&t, CMSG_DATA(c), sizeof(t));
      out.came_ns = ns_of(t);
    }
  }
  return out;
}

}  // namespace

// What recvmmsg and sendmmsg point to; its address does not change.
struct FrameSocket::Buffers {
  static constexpr std::size_t kSlot = 9'216;
  static constexpr std::size_t kControlBytes = 128;
  static_assert(kSlot > LiveFabric::kPacketSizeMax);

  std::array<std::byte, kBatch * kSlot> bytes;
  std::array<mmsghdr, kBatch> messages;
  std::array<iovec, kBatch> pieces;
  std::array<sockaddr_ll, kBatch> names;
  alignas(cmsghdr) std::array<std::array<char, kControlBytes>, kBatch> controls;
};

Mac host_mac(const fabric::HostPort& port) {
  // Locally administered; "W".
  return {0x02,
          0x57,
          static_cast<std::uint8_t>(port.plane + 1),
          static_cast<std::uint8_t>(port.host >> 16),
          static_cast<std::uint8_t>(port.host >> 8),
          static_cast<std::uint8_t>(port.host)};
}

std::string to_text(const Mac& mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3],
                     mac[4], mac[5]);
}

std::string switch_interface(const fabric::HostPort& port) {
  return fmt::format("h{}p{}", port.host, port.plane + 1);
}

FrameSocket::FrameSocket(std::uint32_t planes)
    : planes_(planes), buffers_(std::make_unique<Buffers>()) {}

FrameSocket::FrameSocket(FrameSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      planes_(other.planes_),
      ports_(std::move(other.ports_)),
      port_by_index_(std::move(other.port_by_index_)),
      buffers_(std::move(other.buffers_)),
      counters_(other.counters_) {}

FrameSocket::~FrameSocket() {
  if (fd_ >= 0) close(fd_);
}

Result<FrameSocket> FrameSocket::open(const fabric::Topology& topology) {
  FrameSocket out(topology.plane_count());
  for (fabric::HostIndex host = 0; host < topology.host_count(); ++host) {
    for (std::uint32_t plane = 0; plane < topology.plane_count(); ++plane) {
      const fabric::HostPort port{.host = host, .plane = plane};
      const std::string name = switch_interface(port);
      const unsigned index = if_nametoindex(name.c_str());
      if (index == 0 || index >= kInterfacesMax) {
        return Error{
            ErrorKind::kNotFound,
            fmt::format("interface {}: not in this network namespace; the switch needs one "
                        "for each host and plane, h0p1 to {}",
                        name,
                        switch_interface({.host = topology.host_count() - 1,
                                          .plane = topology.plane_count() - 1}))};
      }
      if (out.port_by_index_.size() <= index) out.port_by_index_.resize(index + 1, kNoPort);
      out.port_by_index_[index] = static_cast<std::uint32_t>(out.ports_.size());
      out.ports_.push_back({.interface = static_cast<int>(index), .mac = host_mac(port)});
    }
  }
  out.fd_ = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_IPV6));
  if (out.fd_ < 0) {
    if (errno == EPERM)
      return Error{ErrorKind::kSystem,
                   "AF_PACKET: not permitted; run it as root or in a user namespace of your own "
                   "(unshare -Urn)"};
    return system_error("AF_PACKET");
  }
  // As much as we may: the first needs privilege beyond the namespace.
  if (!set(out.fd_, SOL_SOCKET, SO_RCVBUFFORCE, kBufferBytes))
    set(out.fd_, SOL_SOCKET, SO_RCVBUF, kBufferBytes);
  if (!set(out.fd_, SOL_SOCKET, SO_SNDBUFFORCE, kBufferBytes))
    set(out.fd_, SOL_SOCKET, SO_SNDBUF, kBufferBytes);
  if (!set(out.fd_, SOL_PACKET, PACKET_AUXDATA, 1)) return system_error("PACKET_AUXDATA");
  if (!set(out.fd_, SOL_SOCKET, SO_TIMESTAMPNS, 1)) return system_error("SO_TIMESTAMPNS");
  return out;
}

std::size_t FrameSocket::receive(Time now, std::span<Incoming> out) {
  Buffers& b = *buffers_;
  const std::size_t most = std::min(out.size(), kBatch);
  for (std::size_t i = 0; i < most; ++i) {
    b.pieces[i] = {b.bytes.data() + i * Buffers::kSlot, Buffers::kSlot};
    b.messages[i] = {};
    msghdr& m = b.messages[i].msg_hdr;
    m.msg_name = &b.names[i];
    m.msg_namelen = sizeof(b.names[i]);
    m.msg_iov = &b.pieces[i];
    m.msg_iovlen = 1;
    m.msg_control = b.controls[i].data();
    m.msg_controllen = b.controls[i].size();
  }
  const int got =
      recvmmsg(fd_, b.messages.data(), static_cast<unsigned>(most), MSG_DONTWAIT, nullptr);
  if (got <= 0) return 0;
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  std::size_t count = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
    const auto interface = static_cast<std::size_t>(b.names[i].sll_ifindex);
    const std::uint32_t port =
        interface < port_by_index_.size() ? port_by_index_[interface] : kNoPort;
    if (port == kNoPort || b.names[i].sll_pkttype == PACKET_OUTGOING) continue;
    if (b.messages[i].msg_len > LiveFabric::kPacketSizeMax ||
        (b.messages[i].msg_hdr.msg_flags & MSG_TRUNC) != 0) {
      ++counters_.too_large;
      continue;
    }
    std::copy_n(b.names[i].sll_addr, ports_[port].mac.size(), ports_[port].mac.begin());
    const Bytes packet = Bytes(b.bytes).subspan(i * Buffers::kSlot, b.messages[i].msg_len);
    const Stamps stamps = stamps_of(b.messages[i].msg_hdr);
    if (stamps.checksum_open) complete_checksum(packet);
    const std::int64_t age = ns_of(wall) - stamps.came_ns;
    const bool aged = stamps.came_ns != 0 && age > 0 && age < kAgeMaxNs;
    out[count++] = {.from = {.host = port / planes_, .plane = port % planes_},
                    .at = aged ? now - Duration::ns(age) : now,
                    .packet = packet};
  }
  return count;
}

void FrameSocket::send(std::span<const LiveFabric::Delivery> packets) {
  Buffers& b = *buffers_;
  while (!packets.empty()) {
    const std::size_t count = std::min(packets.size(), kBatch);
    for (std::size_t i = 0; i < count; ++i) {
      const LiveFabric::Delivery& d = packets[i];
      const Port& port = ports_[index_of({.host = d.host, .plane = d.plane})];
      b.names[i] = {};
      b.names[i].sll_family = AF_PACKET;
      b.names[i].sll_protocol = htons(ETH_P_IPV6);
      b.names[i].sll_ifindex = port.interface;
      b.names[i].sll_halen = static_cast<unsigned char>(port.mac.size());
      std::copy(port.mac.begin(), port.mac.end(), b.names[i].sll_addr);
      b.pieces[i] = {const_cast<std::byte*>(d.packet.data()), d.packet.size()};
      b.messages[i] = {};
      msghdr& m = b.messages[i].msg_hdr;
      m.msg_name = &b.names[i];
      m.msg_namelen = sizeof(b.names[i]);
      m.msg_iov = &b.pieces[i];
      m.msg_iovlen = 1;
    }
    // It stops at the first that is not taken: that one is lost, the rest go on.
    for (std::size_t done = 0; done < count;) {
      const int sent = sendmmsg(fd_, b.messages.data() + done, static_cast<unsigned>(count - done),
                                MSG_DONTWAIT);
      if (sent <= 0) ++counters_.drops_send;
      done += sent <= 0 ? 1 : static_cast<std::size_t>(sent);
    }
    packets = packets.subspan(count);
  }
}

Result<void> FrameSocket::set_carrier(const fabric::HostPort& port, bool up) {
  ifreq request{};
  const std::string name = switch_interface(port);
  std::copy_n(name.begin(), std::min<std::size_t>(name.size(), IFNAMSIZ - 1), request.ifr_name);
  if (ioctl(fd_, SIOCGIFFLAGS, &request) != 0) return system_error(name);
  const auto flags = static_cast<unsigned short>(request.ifr_flags);
  request.ifr_flags = static_cast<short>(up ? flags | IFF_UP : flags & ~IFF_UP);
  if (ioctl(fd_, SIOCSIFFLAGS, &request) != 0) return system_error(name);
  return {};
}

const FrameSocket::Counters& FrameSocket::counters() {
  tpacket_stats stats{};
  socklen_t size = sizeof(stats);
  // The kernel starts over each time it is asked.
  if (getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
    counters_.drops_receive += stats.tp_drops;
  return counters_;
}

}  // namespace weft::net
