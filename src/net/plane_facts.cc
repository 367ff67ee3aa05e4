#include "net/plane_facts.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <array>
#include <cstring>

#include "net/steering.h"
#include "os/address.h"
#include "os/file_descriptor.h"
#include "os/socket_options.h"
#include "os/udp_socket.h"

namespace weft::net {
namespace {

constexpr int kWaitMs = 200;

std::uint64_t half_of(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  getsockopt(fd, SOL_SOCKET, option, &value, &size);
  return value > 0 ? static_cast<std::uint64_t>(value) / 2 : 0;
}

bool takes(int fd, int option, int value) {
  return setsockopt(fd, SOL_UDP, option, &value, sizeof(value)) == 0;
}

// Fills `question`, a request struct of ethtool. False if the driver does not support the request.
template <typename T>
bool ask_ethtool(const std::string& interface, T& question) {
  const os::FileDescriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&question);
  return fd.is_open() && ioctl(fd.get(), SIOCETHTOOL, &request) == 0;
}

std::optional<bool> is_on(const std::string& interface, std::uint32_t question) {
  ethtool_value answer{.cmd = question, .data = 0};
  if (!ask_ethtool(interface, answer)) return std::nullopt;
  return answer.data != 0;
}

struct Tried {
  PortCheck check = PortCheck::kRefused;
  std::string refusal{};
};

// Sends one byte to the port on which this slot listens, from a source port of the slot.
Tried try_slot(const Ipv6& address, std::uint16_t process) {
  auto listen = os::UdpSocket::open(
      {.address = address, .port = wire::listen_port(process), .receives = true});
  auto sender = os::UdpSocket::open({.address = address, .port = wire::source_port(process, 0)});
  for (const auto* opened : {&listen, &sender}) {
    if (*opened) continue;
    const bool taken = opened->error().kind == ErrorKind::kExhausted;
    return {taken ? PortCheck::kTaken : PortCheck::kRefused, opened->error().message};
  }
  std::array<std::byte, 1> word{};
  iovec piece{word.data(), word.size()};
  const auto sent = sender->send({.to = address, .port = wire::listen_port(process)}, {&piece, 1});
  pollfd waiting{.fd = listen->fd(), .events = POLLIN, .revents = 0};
  if (sent != os::UdpSocket::Sent::kTaken || poll(&waiting, 1, kWaitMs) <= 0)
    return {PortCheck::kLost, {}};
  return {PortCheck::kReached, {}};
}

PlaneFacts facts_of(const Ipv6& address, std::span<const os::Interface> interfaces) {
  PlaneFacts facts;
  facts.plane.address = address;
  facts.is_ipv4 = base::is_ipv4(address);
  if (const os::Interface* const on = os::interface_of(address, interfaces)) {
    facts.plane.interface = on->name;
    facts.mtu = on->mtu;
    facts.running = on->running;
    facts.gro = is_on(on->name, ETHTOOL_GGRO);
    facts.gso = is_on(on->name, ETHTOOL_GGSO);
    facts.driver = driver_of(on->name);
  }
  Tried tried = try_slot(address, 0);
  facts.first_port = tried.check;
  facts.refusal = tried.refusal;
  // If another process has the slot, its ports cannot be tested here: try the next slot.
  for (std::uint16_t process = 1; process < wire::kProcessesMax; ++process) {
    tried = try_slot(address, process);
    facts.other_ports = tried.check;
    facts.other_port = wire::listen_port(process);
    if (tried.check == PortCheck::kTaken) continue;
    if (tried.check == PortCheck::kRefused) facts.refusal = tried.refusal;
    break;
  }
  return facts;
}

}  // namespace

std::string driver_of(const std::string& interface) {
  ethtool_drvinfo answer{};
  answer.cmd = ETHTOOL_GDRVINFO;
  if (!ask_ethtool(interface, answer)) return "";
  return std::string(answer.driver, strnlen(answer.driver, sizeof(answer.driver)));
}

SocketFacts socket_facts(const SocketBuffers& asked) {
  SocketFacts facts;
  auto opened = os::UdpSocket::open({.address = base::ipv4(127, 0, 0, 1),
                                     .receive_bytes = asked.receive_bytes,
                                     .send_bytes = asked.send_bytes});
  if (!opened) return facts;
  facts.receive_bytes = half_of(opened->fd(), SO_RCVBUF);
  facts.send_bytes = half_of(opened->fd(), SO_SNDBUF);
  facts.udp_segment = takes(opened->fd(), UDP_SEGMENT, 1000);
  facts.udp_gro = takes(opened->fd(), UDP_GRO, 1);
  return facts;
}

std::vector<PlaneFacts> plane_facts(std::span<const Ipv6> planes) {
  const auto interfaces = os::list_interfaces();
  std::vector<PlaneFacts> out;
  for (const Ipv6& plane : planes)
    out.push_back(facts_of(plane, interfaces ? *interfaces : std::vector<os::Interface>{}));
  return out;
}

}  // namespace weft::net
