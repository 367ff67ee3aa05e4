// PacketTap: captures the packets on the loopback, as an observer of the wire would. It needs the
// privilege to open a packet socket.
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
    std::vector<std::byte> bytes;  // the UDP payload
  };
  struct Seen {
    std::uint16_t from_port = 0, to_port = 0;
    std::vector<std::byte> bytes;
  };
  PacketTap() = default;
  PacketTap(const PacketTap&) = delete;
  PacketTap& operator=(const PacketTap&) = delete;
  ~PacketTap();

  // Starts capturing. False: this is not permitted, see why_not().
  bool open();
  const std::string& why_not() const { return why_not_; }
  // From now on captures only packets to the /24 of this IPv4 address, so that other traffic does
  // not fill the buffer.
  bool narrow_to(const Ipv6& network);
  // The packets captured between the two ends since the last call, as far as the buffer could hold
  // them. Runs that the kernel sends in one piece are split into packets, as at a receiver.
  std::vector<Packet> take(const End& a, const End& b);
  // As take(), for all UDP packets. REQUIRES that payloads of writes are multiples of 4096.
  std::vector<Seen> take_all(Security security);
  // The number of packets lost since the last call because the buffer was full.
  std::uint32_t poll_missed();
  static bool shows(const std::vector<Packet>& packets, ConstBytes bytes);

 private:
  int fd_ = -1;
  std::string why_not_;
};

}  // namespace weft::hostile
