#include "softswitch/proxy_sockets.h"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "os/address.h"
#include "wire/datagram.h"
#include "wire/framing.h"
#include "wire/icrc.h"
#include "wire/ip_layout.h"
#include "wire/process_ports.h"

namespace weft::softswitch {
namespace {

constexpr std::uint32_t kHostsMax = 250;
constexpr std::uint32_t kBufferBytes = 4u << 20;
constexpr std::size_t kHeaders = wire::kIpv6Size + wire::kUdpSize;
// The most packets in a received run.
constexpr std::size_t kRunPacketsMax = 64;

Ipv6 loopback(const fabric::HostPort& port, std::uint8_t net, std::uint8_t last) {
  return base::ipv4(127, static_cast<std::uint8_t>(net + port.plane),
                    static_cast<std::uint8_t>(port.host + 1), last);
}

}  // namespace

Ipv6 socket_host(const fabric::HostPort& port, std::uint8_t net) { return loopback(port, net, 1); }
Ipv6 socket_proxy(const fabric::HostPort& port, std::uint8_t net) { return loopback(port, net, 2); }

ProxySockets::ProxySockets(const ProxySocketsOptions& options)
    : options_(options),
      poll_(epoll_create1(EPOLL_CLOEXEC)),
      buffer_(os::UdpSocket::kRunBytes),
      packets_((kBatch + kRunPacketsMax) * kSlot),
      outgoing_(kSlot) {}

Result<std::unique_ptr<ProxySockets>> ProxySockets::open(const fabric::Topology& topology,
                                                         const ProxySocketsOptions& options) {
  if (topology.host_count() > kHostsMax || options.processes == 0 ||
      options.processes > wire::kProcessesMax || options.net + topology.plane_count() > 255) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("software switch: {} hosts between sockets; expected at most {}",
                             topology.host_count(), kHostsMax)};
  }
  std::unique_ptr<ProxySockets> out(new ProxySockets(options));
  if (!out->poll_.is_open())
    return Error{ErrorKind::kSystem, std::string("epoll: ") + std::strerror(errno)};
  WEFT_CHECK(out->listen(topology));
  return out;
}

Result<void> ProxySockets::listen(const fabric::Topology& topology) {
  hosts_ = topology.host_count();
  listeners_.reserve(std::size_t{hosts_} * topology.plane_count() * options_.processes);
  for (fabric::HostIndex host = 0; host < hosts_; ++host) {
    for (std::uint32_t plane = 0; plane < topology.plane_count(); ++plane) {
      for (std::uint16_t process = 0; process < options_.processes; ++process) {
        const fabric::HostPort to{.host = host, .plane = plane};
        const std::uint16_t port = wire::listen_port(process);
        WEFT_TRY(os::UdpSocket socket,
                 os::UdpSocket::open({.address = socket_proxy(to, options_.net),
                                      .port = port,
                                      .receive_bytes = kBufferBytes,
                                      .receives = true}));
        listeners_.push_back({.to = to, .port = port, .socket = std::move(socket)});
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = listeners_.size() - 1;
        if (epoll_ctl(poll_.get(), EPOLL_CTL_ADD, listeners_.back().socket.fd(), &event) != 0)
          return Error{ErrorKind::kSystem, std::string("epoll: ") + std::strerror(errno)};
      }
    }
  }
  return {};
}

// Converts each packet of a run to an IPv6 packet between addresses of the fabric's address plan.
void ProxySockets::take(const Listener& listener, const os::UdpSocket::Incoming& run,
                        ConstBytes bytes, Time now, std::span<Incoming> out, std::size_t& count) {
  // The sender's address has the form 127.<net + plane>.<host + 1>.1.
  const auto address = static_cast<std::uint32_t>(run.from.low);
  const fabric::HostPort from{.host = (address >> 8 & 0xff) - 1,
                              .plane = (address >> 16 & 0xff) - options_.net};
  if (run.from != socket_host(from, options_.net) || from.host >= hosts_ ||
      from.plane != listener.to.plane)
    return;
  for (std::size_t at = 0; at < bytes.size(); at += run.segment) {
    const ConstBytes datagram =
        bytes.subspan(at, std::min<std::size_t>(run.segment, bytes.size() - at));
    if (datagram.size() + kHeaders > LiveFabric::kPacketSizeMax) {
      ++counters_.too_large;
      continue;
    }
    if (count == out.size()) {
      ++counters_.drops_receive;
      continue;
    }
    const Bytes packet = Bytes(packets_).subspan(used_++ * kSlot, kHeaders + datagram.size());
    const auto udp_size = static_cast<std::uint32_t>(wire::kUdpSize + datagram.size());
    base::store32(packet, 0,
                  6u << wire::ipv6_at::kVersionShift | std::uint32_t{run.traffic_class}
                                                           << wire::ipv6_at::kEcnShift);
    base::store16(packet, wire::ipv6_at::kPayloadSize, udp_size);
    base::store8(packet, wire::ipv6_at::kNextHeader, wire::kNextHeaderUdp);
    base::store8(packet, wire::ipv6_at::kHopLimit, 64);
    base::store_ipv6(packet, wire::ipv6_at::kSource, fabric::address_of(from));
    base::store_ipv6(packet, wire::ipv6_at::kDestination, fabric::address_of(listener.to));
    const Bytes udp = packet.subspan(wire::kIpv6Size);
    base::store16(udp, wire::udp_at::kSourcePort, run.port);
    base::store16(udp, wire::udp_at::kDestinationPort, listener.port);
    base::store16(udp, wire::udp_at::kSize, udp_size);
    base::store16(udp, wire::udp_at::kChecksum, 0);
    std::memcpy(packet.data() + kHeaders, datagram.data(), datagram.size());
    out[count++] = {.from = from, .at = now, .packet = packet};
  }
}

std::size_t ProxySockets::receive(Time now, std::span<Incoming> out) {
  std::array<epoll_event, kBatch> ready;
  const int events = epoll_wait(poll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  std::size_t count = 0;
  for (int i = 0; i < events; ++i) {
    Listener& listener = listeners_[ready[static_cast<std::size_t>(i)].data.u64];
    // Receives one run at a time, as long as a full run still fits into packets_.
    os::UdpSocket::Incoming run;
    if (count + kRunPacketsMax > out.size() && count > 0) break;
    if (listener.socket.receive(buffer_, std::span(&run, 1)) == 0) continue;
    if (run.segment == 0) continue;
    take(listener, run, ConstBytes(buffer_).first(run.size), now, out, count);
  }
  return count;
}

os::UdpSocket* ProxySockets::sender(const fabric::HostPort& from, std::uint16_t port) {
  const std::uint64_t key = std::uint64_t{from.host} << 32 | std::uint64_t{from.plane} << 16 | port;
  if (const auto known = senders_.find(key); known != senders_.end()) return &known->second;
  if (senders_.size() == kSendersMax) return nullptr;
  auto opened = os::UdpSocket::open(
      {.address = socket_proxy(from, options_.net), .port = port, .send_bytes = kBufferBytes});
  if (!opened) return nullptr;
  return &senders_.emplace(key, std::move(*opened)).first->second;
}

void ProxySockets::update_icrc(const fabric::HostPort& from, const fabric::HostPort& to,
                               Bytes datagram) const {
  const auto parts = wire::split_datagram(datagram.subspan(wire::kUdpSize));
  if (!parts || parts->icrc.size() != wire::kIcrcSize) return;
  const auto icrc_between = [&](const Ipv6& source, const Ipv6& destination) {
    wire::Icrc icrc(
        wire::IcrcFlow{.source = source,
                       .destination = destination,
                       .source_port = base::load16(datagram, wire::udp_at::kSourcePort),
                       .destination_port = base::load16(datagram, wire::udp_at::kDestinationPort),
                       .udp_size = static_cast<std::uint16_t>(datagram.size())});
    icrc.add_header(parts->header);
    if (options_.icrc_full) {
      icrc.add(parts->payload);
      icrc.add(parts->padding);
    }
    return icrc;
  };
  const wire::Icrc sent =
      icrc_between(socket_host(from, options_.net), socket_proxy(to, options_.net));
  if (!sent.matches(parts->icrc)) return;
  icrc_between(socket_proxy(from, options_.net), socket_host(to, options_.net))
      .store(datagram.last(wire::kIcrcSize));
}

void ProxySockets::send(std::span<const LiveFabric::Delivery> packets) {
  for (const LiveFabric::Delivery& delivery : packets) {
    const auto facts = read_facts(delivery.packet);
    const auto from = facts ? fabric::port_of(facts->source) : std::nullopt;
    const fabric::HostPort to{.host = delivery.host, .plane = delivery.plane};
    if (!from || !facts->udp) {
      ++counters_.drops_send;
      continue;
    }
    const Bytes datagram = Bytes(outgoing_).first(delivery.packet.size() - wire::kIpv6Size);
    std::memcpy(datagram.data(), delivery.packet.data() + wire::kIpv6Size, datagram.size());
    // A trimmed packet has no ICRC.
    if (!world::is_trimmed(facts->dscp)) update_icrc(*from, to, datagram);
    os::UdpSocket* const socket = sender(*from, base::load16(datagram, wire::udp_at::kSourcePort));
    iovec piece{datagram.data() + wire::kUdpSize, datagram.size() - wire::kUdpSize};
    const bool sent =
        socket != nullptr &&
        socket->send(
            {.to = socket_host(to, options_.net),
             .port = base::load16(datagram, wire::udp_at::kDestinationPort),
             .traffic_class = static_cast<std::uint8_t>(static_cast<unsigned>(facts->dscp) << 2 |
                                                        static_cast<unsigned>(facts->ecn))},
            std::span(&piece, 1)) == os::UdpSocket::Sent::kTaken;
    counters_.drops_send += !sent;
  }
}

}  // namespace weft::softswitch
