// Packets as they cross a socket in one system call. Pure functions and values.
//
// A run has one path, one peer and one traffic class. Its packets have equal sizes on the wire,
// except that the last may be shorter. PlainPackets and SealedPackets build runs of datagrams, and
// take received packets apart.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "world/world.h"

namespace weft::net {

// Datagrams of one poll of the node. About two runs: the time at which a packet counts as sent must
// be close to the time at which it is sent.
inline constexpr std::size_t kPollDatagramsMax = 45;

// The leading datagrams of a poll, as they go to the kernel.
struct OutgoingRun {
  std::size_t count = 0;      // datagrams
  std::size_t segment = 0;    // bytes of each packet but the last
  std::span<iovec> pieces{};  // all bytes, in order; valid until the next run is built
};

// A packet as it arrived, in the receive buffer. An empty header: the packet was for the layer that
// seals, and is handled.
struct IncomingPacket {
  ConstBytes header{}, payload{};
  bool intact = true;  // the ICRC matches
};

// Whether both may be in one run, as far as path and traffic class go. Retransmitted and new
// packets may share a run, which has the class of its first packet.
bool have_one_path(const world::Datagram& a, const world::Datagram& b);

// Puts packets of one path next to each other, so that they leave as one run for the kernel
// (docs/decisions/0029). The order on each path is kept. Packets that already form long runs stay
// as they are: then the result is `out`, otherwise it is in `room`. REQUIRES at most
// kPollDatagramsMax datagrams and as much room.
std::span<const world::Datagram> group_by_path(std::span<const world::Datagram> out,
                                               std::span<world::Datagram> room);

}  // namespace weft::net
