// PlainPackets: builds runs of plain packets, each with an ICRC, and splits received packets into
// their parts. Packets are not copied: a run names the pieces of memory that they lie in.
//
// Each direction needs its own object, because it caches partial ICRCs. Nothing is allocated.
#pragma once

#include <array>

#include "base/result.h"
#include "net/packet_run.h"
#include "wire/datagram.h"
#include "wire/drop_reason.h"
#include "wire/framing.h"
#include "wire/icrc.h"

namespace weft::net {

class PlainPackets {
 public:
  explicit PlainPackets(wire::IcrcCover cover) : cover_(cover) {}

  // Source and destination of a packet: the fields of IP and UDP, besides the size, that its ICRC
  // covers.
  struct Ends {
    Ipv6 from{}, to{};
    std::uint16_t from_port = 0, to_port = 0;
  };
  // Builds the longest run from the front of `out` that one system call takes. Its count is 0 if
  // the first datagram is too large for a packet. REQUIRES that `out` is not empty.
  OutgoingRun join(std::span<const world::Datagram> out, const Ends& ends);
  // Splits a packet of traffic class `dscp` into its parts and checks its ICRC.
  Result<IncomingPacket, DropReason> take_apart(ConstBytes packet, world::Dscp dscp,
                                                const Ends& ends);

 private:
  struct Trailer {
    std::array<std::byte, 3 + wire::kIcrcSize> bytes;
  };

  bool is_intact(const wire::DatagramParts& parts, const Ends& ends);

  wire::IcrcCover cover_;
  wire::IcrcStart starts_;
  std::array<iovec, 3 * kPollDatagramsMax> pieces_;
  std::array<Trailer, kPollDatagramsMax> trailers_;
};

}  // namespace weft::net
