// RunSender: sends datagrams over the planes, each run of one path in one system call.
//
// Packets that the kernel does not accept now are held. Their plane then accepts no other packets
// until its socket has room and retry_held() has sent the held packets. RunSender also sends the
// hellos of sealed sessions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "net/net_counters.h"
#include "net/plain_packets.h"
#include "net/plane.h"
#include "net/refusal_polls.h"
#include "net/sealed_packets.h"
#include "net/socket_watch.h"

namespace weft::net {

class RunSender {
 public:
  // The parts of the world that a sender uses. They outlive the sender.
  struct WorldParts {
    std::vector<Plane>& planes;
    const Steering& steering;
    SocketWatch& watch;      // learns which sockets wait for room
    RefusalPolls& refusals;  // learns of sends, which a peer may refuse
    NetCounters& counters;
    SealedPackets* sealed = nullptr;  // null: packets are plain
  };
  RunSender(const WorldParts& parts, std::uint16_t process, wire::IcrcCover cover);

  // Sends the longest run at the front of `out`, and returns the number of datagrams in it.
  // Datagrams that cannot be sent are held or dropped. A packet for which there are no keys yet is
  // not sent; a hello is sent in its place, and the transport retransmits the packet. REQUIRES that
  // `out` is not empty.
  std::size_t send_run(Time now, std::span<const world::Datagram> out);
  // To be called when the socket that `plane` waits for has room. True if anything was sent.
  bool retry_held(Time now, std::uint32_t plane);
  // Sends the hellos that are due.
  void send_hellos(Time now);

 private:
  OutgoingRun join(Time now, std::span<const world::Datagram> out, const Steering::Fields& fields);
  void send_pieces(Time now, std::span<const world::Datagram> datagrams,
                   const Steering::Fields& fields, const OutgoingRun& run);
  void hold(std::span<const world::Datagram> datagrams, int sender_fd);
  void keep(Plane& plane, const world::Datagram& datagram);

  WorldParts parts_;
  std::uint16_t process_;
  PlainPackets plain_;
  // By plane: the socket that is watched because its buffer is full; -1: none.
  std::array<int, world::kPortsMax> without_room_;
};

}  // namespace weft::net
