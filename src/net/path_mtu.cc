#include "net/path_mtu.h"

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/socket.h>
// Must follow a header that defines timespec.
#include <linux/errqueue.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "os/address.h"
#include "os/clock.h"
#include "os/file_descriptor.h"
#include "os/socket_options.h"

namespace weft::net {
namespace {

// No process listens on this port. It lies between the listening ports of processes and their
// source ports (steering.h), so that a firewall that lets those pass lets this port pass too.
constexpr std::uint16_t kNobodysPort = 15'100;
constexpr Duration kPatience = Duration::ms(50);

// A UDP socket connected from one end of a path to the other; not open if there is no route.
os::FileDescriptor open_path_socket(const PathEnds& ends, std::uint16_t port) {
  const bool v4 = base::is_ipv4(ends.from);
  if (v4 != base::is_ipv4(ends.to)) return {};
  os::FileDescriptor fd(
      socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const os::SocketAddress from = os::to_sockaddr(ends.from, 0), to = os::to_sockaddr(ends.to, port);
  if (!fd.is_open() ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&from.storage), from.size) != 0 ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0) {
    return {};
  }
  return fd;
}

enum class ProbeResult : std::uint8_t { kNoAnswer, kArrived, kTooBig };

ProbeResult result_of(const sock_extended_err& error) {
  if (error.ee_origin == SO_EE_ORIGIN_ICMP && error.ee_type == ICMP_DEST_UNREACH) {
    if (error.ee_code == ICMP_PORT_UNREACH) return ProbeResult::kArrived;
    if (error.ee_code == ICMP_FRAG_NEEDED) return ProbeResult::kTooBig;
  }
  if (error.ee_origin == SO_EE_ORIGIN_ICMP6) {
    if (error.ee_type == ICMP6_DST_UNREACH && error.ee_code == ICMP6_DST_UNREACH_NOPORT)
      return ProbeResult::kArrived;
    if (error.ee_type == ICMP6_PACKET_TOO_BIG) return ProbeResult::kTooBig;
  }
  // The MTU of the local interface is smaller than the packet.
  if (error.ee_origin == SO_EE_ORIGIN_LOCAL && error.ee_errno == EMSGSIZE)
    return ProbeResult::kTooBig;
  return ProbeResult::kNoAnswer;
}

ProbeResult read_result(int fd) {
  alignas(cmsghdr) std::array<char, 256> control;
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return ProbeResult::kNoAnswer;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    const bool is_error = (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
                          (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR);
    if (!is_error || c->cmsg_len < CMSG_LEN(sizeof(sock_extended_err))) continue;
    sock_extended_err error{};
    std::memcpy(&error, CMSG_DATA(c), sizeof(error));
    return result_of(error);
  }
  return ProbeResult::kNoAnswer;
}

// Sends one packet of `size` bytes on each path, each from its own source port, and waits for the
// ICMP answers.
std::vector<ProbeResult> ask(std::span<const PathEnds> paths, std::size_t size) {
  const std::vector<std::byte> packet(size);
  std::vector<ProbeResult> results(paths.size(), ProbeResult::kNoAnswer);
  std::vector<os::FileDescriptor> sockets;
  std::vector<pollfd> asked;
  for (const PathEnds& path : paths) {
    sockets.push_back(open_path_socket(path, kNobodysPort));
    const int fd = sockets.back().get();
    asked.push_back({.fd = fd, .events = 0, .revents = 0});  // poll() always reports errors
    if (fd < 0) continue;
    const int level = base::is_ipv4(path.from) ? IPPROTO_IP : IPPROTO_IPV6;
    os::never_fragment(fd, level);
    os::set_option(fd, level, level == IPPROTO_IP ? IP_RECVERR : IPV6_RECVERR, 1);
    [[maybe_unused]] const ssize_t sent = send(fd, packet.data(), packet.size(), 0);
  }
  const Time until = os::clock_now() + kPatience;
  const auto waits = [&] {
    return std::any_of(asked.begin(), asked.end(), [](const pollfd& p) { return p.fd >= 0; });
  };
  while (waits() && os::clock_now() < until) {
    poll(asked.data(), asked.size(), 1);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (asked[i].fd < 0 || asked[i].revents == 0) continue;
      results[i] = read_result(asked[i].fd);
      if (results[i] != ProbeResult::kNoAnswer)
        asked[i].fd = -1;  // poll() ignores this entry from now on
    }
  }
  return results;
}

std::vector<PathEnds> those(std::span<const PathEnds> paths,
                            const std::vector<ProbeResult>& results, ProbeResult result) {
  std::vector<PathEnds> out;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (results[i] == result) out.push_back(paths[i]);
  }
  return out;
}

bool has(const std::vector<ProbeResult>& results, ProbeResult result) {
  return std::find(results.begin(), results.end(), result) != results.end();
}

// Whether a path reports that packets of `size` bytes are too big, or answers a packet of `small`
// bytes but not one of `size` bytes.
bool is_refused(std::span<const PathEnds> paths, std::size_t size, std::size_t small) {
  std::vector<PathEnds> silent(paths.begin(), paths.end());
  constexpr int kTries = 2;  // packets get lost, and hosts limit their ICMP rate
  for (int i = 0; i < kTries && !silent.empty(); ++i) {
    const auto results = ask(silent, size);
    if (has(results, ProbeResult::kTooBig)) return true;
    silent = those(silent, results, ProbeResult::kNoAnswer);
  }
  for (int i = 0; i < kTries && !silent.empty(); ++i) {
    silent = those(silent, ask(silent, small), ProbeResult::kArrived);
    silent = those(silent, ask(silent, size), ProbeResult::kNoAnswer);
  }
  return !silent.empty();
}

}  // namespace

std::uint32_t path_mtu(const PathEnds& ends) {
  const os::FileDescriptor fd = open_path_socket(ends, kNobodysPort);
  const bool v4 = base::is_ipv4(ends.from);
  int mtu = 0;
  socklen_t size = sizeof(mtu);
  if (!fd.is_open() || getsockopt(fd.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MTU : IPV6_MTU,
                                  &mtu, &size) != 0) {
    return 0;
  }
  return mtu > 0 ? static_cast<std::uint32_t>(mtu) : 0;
}

std::size_t size_that_arrives(std::span<const PathEnds> paths, std::span<const std::size_t> sizes) {
  WEFT_ASSERT(!sizes.empty());
  for (const std::size_t size : sizes.first(sizes.size() - 1)) {
    if (!is_refused(paths, size, sizes.back())) return size;
  }
  return sizes.back();
}

}  // namespace weft::net
