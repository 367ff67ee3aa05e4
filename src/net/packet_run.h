// Runs: the packets that cross a socket in one system call, as pure functions and values.
//
// The packets of a run have one path, one peer and one traffic class. They have equal sizes on the
// wire, except that the last may be shorter. PlainPackets and SealedPackets build runs of
// datagrams, and split received runs into packets.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "world/world.h"

namespace weft::net {

// The most datagrams that a world takes from the node in one poll. This is about two runs: the node
// notes the time of the poll as sending time, so the packets must leave soon after it.
inline constexpr std::size_t kPollDatagramsMax = 45;

// The leading datagrams of those that a poll of the node returned and that are not yet sent, joined
// to the form in which the kernel sends them in one system call.
struct OutgoingRun {
  std::size_t count = 0;      // number of datagrams
  std::size_t segment = 0;    // bytes of each packet except the last
  std::span<iovec> pieces{};  // all bytes, in order; valid until the next run is built
};

// A packet in the receive buffer, as it arrived. Its header is empty if SealedPackets has already
// handled the packet (a hello).
struct IncomingPacket {
  ConstBytes header{}, payload{};
  bool intact = true;  // the ICRC matches
};

// Whether two datagrams have the same path, peer and traffic class, so that both may be in one run.
// A retransmission may share a run with new packets; the run has the class of its first packet.
bool have_one_path(const world::Datagram& a, const world::Datagram& b);

// Puts packets of one path next to each other, so that they leave as one run (docs/decisions/0029).
// The order on each path is kept. Packets that already form long runs stay in place: then the
// result is `out`, otherwise it is in `room`. REQUIRES at most kPollDatagramsMax datagrams, and
// room for as many.
std::span<const world::Datagram> group_by_path(std::span<const world::Datagram> out,
                                               std::span<world::Datagram> room);

}  // namespace weft::net
