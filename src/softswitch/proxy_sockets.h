// ProxySockets: connects a software switch to its hosts without namespaces. Hosts are addresses on
// the loopback. Each host has a second address, its proxy, which belongs to the switch.
//
//   host h, plane p   127.<100 + p>.<h + 1>.1   bound by the host
//   its proxy         127.<100 + p>.<h + 1>.2   bound by the switch; stands for h to the others
//
// A datagram from host g to the proxy of host h enters the fabric as a packet from g to h. It
// leaves the fabric from the proxy of g, with its original source port, to host h. So each host
// knows the other hosts only by their proxies. EV, DSCP and CE mark of a packet are kept. The ICRC
// covers the addresses, so a valid ICRC is computed anew. An invalid ICRC is left as it is: the
// packet was damaged, or it is sealed and has a tag in place of the ICRC.
//
// IPv4 only; at most 8 planes and 250 hosts. Ports always have a carrier. Sending sockets are
// opened when an EV is first seen, at most kSendersMax.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/ipv6.h"
#include "os/file_descriptor.h"
#include "os/udp_socket.h"
#include "softswitch/fabric_edge.h"

namespace weft::softswitch {

struct ProxySocketsOptions {
  std::uint32_t processes = 4;  // the switch listens for this many slots of each host
  bool icrc_full = false;       // the hosts' ICRCs cover the payload too (IcrcCover::kFull)
  std::uint8_t net = 100;       // addresses are 127.<net + p>
};

Ipv6 socket_host(const fabric::HostPort& port, std::uint8_t net = 100);
Ipv6 socket_proxy(const fabric::HostPort& port, std::uint8_t net = 100);

class ProxySockets final : public FabricEdge {
 public:
  static constexpr std::size_t kSendersMax = 4096;

  // Errors: kInvalid (too many hosts), kExhausted (an address is in use), kSystem.
  static Result<std::unique_ptr<ProxySockets>> open(const fabric::Topology& topology,
                                                    const ProxySocketsOptions& options);

  int fd() const override { return poll_.get(); }
  std::size_t receive(Time now, std::span<Incoming> out) override;
  void release() override { used_ = 0; }
  void send(std::span<const LiveFabric::Delivery> packets) override;
  Result<void> set_carrier(const fabric::HostPort&, bool) override { return {}; }
  const Counters& counters() override { return counters_; }

 private:
  struct Listener {
    fabric::HostPort to{};
    std::uint16_t port = 0;
    os::UdpSocket socket{};
  };
  explicit ProxySockets(const ProxySocketsOptions& options);
  Result<void> listen(const fabric::Topology& topology);
  void take(const Listener& listener, const os::UdpSocket::Incoming& run, ConstBytes bytes,
            Time now, std::span<Incoming> out, std::size_t& count);
  os::UdpSocket* sender(const fabric::HostPort& from, std::uint16_t port);
  void update_icrc(const fabric::HostPort& from, const fabric::HostPort& to, Bytes packet) const;

  static constexpr std::size_t kSlot = 9'216;
  ProxySocketsOptions options_;
  std::uint32_t hosts_ = 0;
  os::FileDescriptor poll_;
  std::vector<Listener> listeners_;
  std::map<std::uint64_t, os::UdpSocket> senders_;  // by host, plane and port
  std::vector<std::byte> buffer_;                   // one received run at a time
  std::vector<std::byte> packets_;                  // packets of kSlot bytes each
  std::size_t used_ = 0;
  std::vector<std::byte> outgoing_;
  Counters counters_;
};

}  // namespace weft::softswitch
