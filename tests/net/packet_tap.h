// What crosses the loopback, as who listens on the wire sees it. Needs the privilege to open a packet
// socket.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ipv6.h"
#include "hostile_pair.h"

namespace weft::hostile {

class PacketTap {
 public:
  struct Packet {
    bool to_b = false;
    std::vector<std::byte> bytes;  // of the UDP payload
  };
  struct Seen {
    std::uint16_t from_port = 0, to_port = 0;
    std::vector<std::byte> bytes;
  };
  PacketTap() = default;
  PacketTap(const PacketTap&) = delete;
  PacketTap& operator=(const PacketTap&) = delete;
  ~PacketTap();

  // False: not permitted, see why_not().
  bool open();
  const std::string& why_not() const { return why_not_; }
  // From now on only what goes to addresses that differ from this IPv4 address in the last byte: what
  // others send takes no room.
  bool narrow_to(const Ipv6& network);
  // What went between the two since the last time, as far as the tap could keep it. Runs that the
  // kernel sends in one piece are cut as a receiver would get them.
  std::vector<Packet> take(const End& a, const End& b);
  // The same of everybody's UDP packets. Payload of writes is a multiple of 4096.
  std::vector<Seen> take_all(Security security);
  // How many it had no room for since it was last asked.
  std::uint32_t poll_missed();
  static bool shows(const std::vector<Packet>& packets, ConstBytes bytes);

 private:
  int fd_ = -1;
  std::string why_not_;
};

}  // namespace weft::hostile
