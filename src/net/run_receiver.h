// RunReceiver: receives runs of packets, and makes datagrams of their packets in place. Plain
// packets have their ICRC checked; sealed packets are opened. Invalid packets are dropped and
// counted.
//
// Holds the receive buffer, which is allocated at construction; datagrams are valid until the next
// receive().
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "net/net_counters.h"
#include "net/plain_packets.h"
#include "net/poll_order.h"
#include "net/run_sender.h"
#include "net/sealed_packets.h"
#include "net/steering.h"
#include "net/udp_world_config.h"
#include "os/udp_socket.h"

namespace weft::net {

class RunReceiver {
 public:
  struct Options {
    PeerKind peers = PeerKind::kSoftware;
    IcrcCover icrc = IcrcCover::kHeaders;
    SealedPackets* sealed = nullptr;  // null: packets are plain
    RunSender* sender = nullptr;      // sends hellos that received hellos cause; with `sealed`
  };
  // The objects behind the references outlive the receiver.
  RunReceiver(const Options& options, const Steering& steering, NetCounters& counters);

  // Receives up to `runs_max` runs from `socket`, a Plane or a UdpSocket. REQUIRES runs_max <=
  // PollOrder::kRunsMax.
  template <typename Socket>
  std::span<const os::UdpSocket::Incoming> receive(Socket& socket, std::size_t runs_max) {
    count_ = socket.receive(buffer_, std::span(runs_).first(runs_max));
    return std::span(runs_).first(count_);
  }
  // The datagrams of the runs that the last receive() gave. `place` names the receiving port.
  struct Place {
    world::PortIndex port = 0;
    Ipv6 address{};  // of the receiving plane, as peers know it
    std::uint16_t listen_port = 0;
  };
  std::span<world::Datagram> datagrams(Time now, const Place& place);

 private:
  // The kernel joins at most this many packets into one run.
  static constexpr std::size_t kRunPacketsMax = 64;

  // A received run, and where and when it arrived.
  struct Arrival {
    Time now;
    const Place& place;
    const os::UdpSocket::Incoming& run;
    std::uint32_t ev = 0;
  };
  void add_run(const Arrival& at, Bytes bytes);
  Result<IncomingPacket, DropReason> open(const Arrival& at, Bytes packet);

  Options options_;
  const Steering* steering_;
  NetCounters* counters_;
  PlainPackets plain_;
  std::vector<std::byte> buffer_;
  std::array<os::UdpSocket::Incoming, PollOrder::kRunsMax> runs_;
  std::size_t count_ = 0;
  std::vector<world::Datagram> datagrams_;
};

}  // namespace weft::net
