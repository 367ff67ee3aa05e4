#include "softswitch/frame_socket.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "os/system_error.h"

namespace weft::softswitch {
namespace {

constexpr std::uint32_t kNoPort = 0xffff'ffff;
constexpr int kSendBytes = 16 << 20;
// The ring has 32 MiB of frames with one packet each: six frames in a block, 3,072 in all. That is
// enough for 60 ms of eight senders at 200 Mb/s.
constexpr std::size_t kBlockBytes = 64 * 1024;
constexpr std::size_t kBlocks = 512;
constexpr std::size_t kFrameBytes = 9'728;
constexpr std::size_t kFramesPerBlock = kBlockBytes / kFrameBytes;
constexpr std::size_t kFrames = kBlocks * kFramesPerBlock;
static_assert(kFrameBytes % TPACKET_ALIGNMENT == 0 &&
              kFrameBytes > LiveFabric::kPacketSizeMax + TPACKET2_HDRLEN + 64);
// Interface indices in a namespace are small, so a larger index cannot belong to one of our
// interfaces.
constexpr std::size_t kInterfacesMax = 1u << 16;
// A packet that seems older than this has a timestamp of another clock.
constexpr std::int64_t kAgeMaxNs = 1'000'000'000;

bool set(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

std::int64_t ns_of(const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

}  // namespace

// The arguments of sendmmsg(). They are on the heap, so that their address does not change when a
// FrameSocket is moved.
struct FrameSocket::Buffers {
  std::array<mmsghdr, kBatch> messages;
  std::array<iovec, kBatch> pieces;
  std::array<sockaddr_ll, kBatch> names;
};

Mac link_mac(fabric::LinkId link) {
  // The first byte marks a locally administered address; 0x57 is "W".
  return {0x02,
          0x57,
          static_cast<std::uint8_t>(link >> 24),
          static_cast<std::uint8_t>(link >> 16),
          static_cast<std::uint8_t>(link >> 8),
          static_cast<std::uint8_t>(link)};
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
      ring_(std::exchange(other.ring_, nullptr)),
      ring_at_(other.ring_at_),
      handed_(other.handed_),
      counters_(other.counters_) {}

FrameSocket::~FrameSocket() {
  if (ring_ != nullptr) munmap(ring_, kBlocks * kBlockBytes);
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
      out.ports_.push_back(
          {.interface = static_cast<int>(index), .mac = link_mac(topology.host_up(plane, host))});
    }
  }
  // The socket is opened without a protocol, so that no packet arrives before the ring exists.
  out.fd_ = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (out.fd_ < 0) {
    if (errno == EPERM)
      return Error{ErrorKind::kSystem,
                   "AF_PACKET: not permitted; run it as root or in a user namespace of your own "
                   "(unshare -Urn)"};
    return os::system_error("AF_PACKET");
  }
  // SO_SNDBUFFORCE exceeds the system's limit, but needs privilege beyond the namespace.
  if (!set(out.fd_, SOL_SOCKET, SO_SNDBUFFORCE, kSendBytes))
    set(out.fd_, SOL_SOCKET, SO_SNDBUF, kSendBytes);
  WEFT_CHECK(out.open_ring());
  return out;
}

Result<void> FrameSocket::open_ring() {
  if (!set(fd_, SOL_PACKET, PACKET_VERSION, TPACKET_V2)) return os::system_error("TPACKET_V2");
  const tpacket_req request{.tp_block_size = kBlockBytes,
                            .tp_block_nr = kBlocks,
                            .tp_frame_size = kFrameBytes,
                            .tp_frame_nr = kFrames};
  if (setsockopt(fd_, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)) != 0)
    return os::system_error("PACKET_RX_RING of 32 MiB");
  void* const memory =
      mmap(nullptr, kBlocks * kBlockBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) return os::system_error("mmap of the packet ring");
  ring_ = static_cast<std::byte*>(memory);
  sockaddr_ll all{};
  all.sll_family = AF_PACKET;
  all.sll_protocol = htons(ETH_P_IPV6);
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&all), sizeof(all)) != 0)
    return os::system_error("AF_PACKET bind");
  return {};
}

std::byte* FrameSocket::frame(std::size_t index) const {
  return ring_ + index / kFramesPerBlock * kBlockBytes + index % kFramesPerBlock * kFrameBytes;
}

std::size_t FrameSocket::receive(Time now, std::span<Incoming> out) {
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  std::size_t count = 0;
  // At most kFrames - 1 frames are given out: with all of them, the end of the ring would equal its
  // begin.
  while (count < out.size() && handed_ < kFrames - 1) {
    std::byte* const at = frame(ring_at_);
    auto* const header = reinterpret_cast<tpacket2_hdr*>(at);
    // The kernel sets the status last, after all other fields of the frame.
    const std::uint32_t status = __atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE);
    if ((status & TP_STATUS_USER) == 0) break;
    ring_at_ = (ring_at_ + 1) % kFrames;
    ++handed_;
    sockaddr_ll from;
    std::memcpy(&from, at + TPACKET_ALIGN(sizeof(tpacket2_hdr)), sizeof(from));
    const auto interface = static_cast<std::size_t>(from.sll_ifindex);
    const std::uint32_t port =
        interface < port_by_index_.size() ? port_by_index_[interface] : kNoPort;
    if (port == kNoPort || from.sll_pkttype == PACKET_OUTGOING) continue;
    if (header->tp_snaplen < header->tp_len || header->tp_len > LiveFabric::kPacketSizeMax) {
      ++counters_.too_large;
      continue;
    }
    std::copy_n(from.sll_addr, ports_[port].mac.size(), ports_[port].mac.begin());
    const Bytes packet(at + header->tp_net, header->tp_len);
    if ((status & TP_STATUS_CSUMNOTREADY) != 0) complete_checksum(packet);
    const std::int64_t age =
        ns_of(wall) - (std::int64_t{header->tp_sec} * 1'000'000'000 + header->tp_nsec);
    const bool aged = age > 0 && age < kAgeMaxNs;
    out[count++] = {.from = {.host = port / planes_, .plane = port % planes_},
                    .at = aged ? now - Duration::ns(age) : now,
                    .packet = packet};
  }
  return count;
}

void FrameSocket::release() {
  for (; handed_ > 0; --handed_) {
    const std::size_t index = (ring_at_ + kFrames - handed_) % kFrames;
    auto* const header = reinterpret_cast<tpacket2_hdr*>(frame(index));
    __atomic_store_n(&header->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
  }
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
    // sendmmsg() stops at the first packet that the kernel does not accept. That packet is lost;
    // the others are sent.
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
  if (ioctl(fd_, SIOCGIFFLAGS, &request) != 0) return os::system_error(name);
  const auto flags = static_cast<unsigned short>(request.ifr_flags);
  request.ifr_flags = static_cast<short>(up ? flags | IFF_UP : flags & ~IFF_UP);
  if (ioctl(fd_, SIOCSIFFLAGS, &request) != 0) return os::system_error(name);
  return {};
}

const FabricEdge::Counters& FrameSocket::counters() {
  tpacket_stats stats{};
  socklen_t size = sizeof(stats);
  // Reading the statistics resets them.
  if (getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
    counters_.drops_receive += stats.tp_drops;
  return counters_;
}

}  // namespace weft::softswitch
