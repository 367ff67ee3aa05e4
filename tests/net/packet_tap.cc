#include "packet_tap.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "seal/secure_hello.h"
#include "seal/secure_layout.h"
#include "wire/layout.h"

namespace weft::hostile {
namespace {

constexpr std::size_t kFullPayload = 4096;

// The size of the first packet in `run`, from its header. Only full packets come in runs.
std::size_t packet_size(ConstBytes run, Security security) {
  const bool secured = security == Security::kSecured;
  if (run.size() < wire::bth_at::kSize || seal::is_hello(run)) return run.size();
  const std::uint32_t psn_word = base::load32(run, wire::bth_at::kPsnWord);
  const auto opcode = static_cast<wire::Opcode>(run[0]);
  const std::size_t header = wire::header_size(
      {.opcode = opcode, .has_timestamp = (psn_word & wire::bth_at::kTimestamp) != 0});
  if (header == 0) return run.size();
  if (!wire::is_write(opcode)) {
    return std::min(run.size(), header + (secured ? seal::kSealedControlExtra : wire::kIcrcSize));
  }
  return std::min(run.size(),
                  header + kFullPayload + (secured ? seal::kSealedWriteExtra : wire::kIcrcSize));
}

}  // namespace

PacketTap::~PacketTap() {
  if (fd_ >= 0) close(fd_);
}

bool PacketTap::open() {
  fd_ = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) {
    why_not_ = std::string("listening on the loopback needs root: ") + std::strerror(errno);
    return false;
  }
  const int room = 64 << 20;
  if (setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) != 0)
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
  sockaddr_ll where{};
  where.sll_family = AF_PACKET;
  where.sll_protocol = htons(ETH_P_IP);
  where.sll_ifindex = static_cast<int>(if_nametoindex("lo"));
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof(where)) != 0) {
    why_not_ = std::string("the loopback cannot be listened on: ") + std::strerror(errno);
    return false;
  }
  return true;
}

bool PacketTap::narrow_to(const Ipv6& network) {
  const auto first = static_cast<std::uint32_t>(network.low) & 0xffff'ff00;
  constexpr std::uint32_t kDestinationAt = 16;  // offset in the IPv4 header
  std::array<sock_filter, 5> code{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kDestinationAt),
                                   BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffff'ff00),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, 0xffff'ffff),
                                   BPF_STMT(BPF_RET | BPF_K, 0)}};
  const sock_fprog program{.len = code.size(), .filter = code.data()};
  return setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

std::uint32_t PacketTap::poll_missed() {
  tpacket_stats stats{};
  socklen_t size = sizeof(stats);
  // Reading the statistics resets them to zero.
  if (getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &stats, &size) != 0) return 0xffff'ffff;
  return stats.tp_drops;
}

std::vector<PacketTap::Seen> PacketTap::take_all(Security security) {
  std::vector<Seen> out;
  std::array<std::byte, 1 << 17> buffer;
  for (;;) {
    sockaddr_ll from{};
    socklen_t from_size = sizeof(from);
    const ssize_t got = recvfrom(fd_, buffer.data(), buffer.size(), 0,
                                 reinterpret_cast<sockaddr*>(&from), &from_size);
    if (got < 0) return out;
    const ConstBytes packet = ConstBytes(buffer).first(static_cast<std::size_t>(got));
    // On the loopback each packet is captured twice, leaving and arriving.
    if (from.sll_pkttype == PACKET_OUTGOING || packet.size() < 20) continue;
    const std::size_t ip_size = static_cast<std::size_t>(packet[0] & std::byte{15}) * 4;
    if (packet[9] != std::byte{IPPROTO_UDP} || packet.size() < ip_size + 8) continue;
    const std::uint16_t from_port = base::load16(packet, ip_size);
    const std::uint16_t to_port = base::load16(packet, ip_size + 2);
    ConstBytes run = packet.subspan(ip_size + 8);
    while (!run.empty()) {
      const std::size_t size = packet_size(run, security);
      out.push_back({.from_port = from_port,
                     .to_port = to_port,
                     .bytes = {run.begin(), run.begin() + static_cast<std::ptrdiff_t>(size)}});
      run = run.subspan(size);
    }
  }
}

std::vector<PacketTap::Packet> PacketTap::take(const End& a, const End& b) {
  std::vector<Packet> out;
  const world::Address& at_a = a.hello.ports[0];
  const world::Address& at_b = b.hello.ports[0];
  const auto is_way = [](const Seen& seen, const world::Address& from, const world::Address& to) {
    return wire::process_of(seen.from_port) == from.process &&
           seen.to_port == wire::listen_port(to.process);
  };
  for (Seen& seen :
       take_all(a.hello.secret_fingerprint != 0 ? Security::kSecured : Security::kPlain)) {
    const bool to_b = is_way(seen, at_a, at_b);
    if (to_b || is_way(seen, at_b, at_a))
      out.push_back({.to_b = to_b, .bytes = std::move(seen.bytes)});
  }
  return out;
}

bool PacketTap::shows(const std::vector<Packet>& packets, ConstBytes bytes) {
  return std::any_of(packets.begin(), packets.end(), [&](const Packet& p) {
    return std::search(p.bytes.begin(), p.bytes.end(), bytes.begin(), bytes.end()) != p.bytes.end();
  });
}

}  // namespace weft::hostile
