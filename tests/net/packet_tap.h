// What crosses the loopback, as who listens on the wire sees it. Needs the privilege to open a packet
// socket.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "hostile_pair.h"

namespace weft::hostile {

class PacketTap {
 public:
  struct Packet {
    bool to_b = false;
    std::vector<std::byte> bytes;  // of the UDP payload
  };
  PacketTap() = default;
  PacketTap(const PacketTap&) = delete;
  PacketTap& operator=(const PacketTap&) = delete;
  ~PacketTap();

  // False: not permitted, see why_not().
  bool open();
  const std::string& why_not() const { return why_not_; }
  // What went between the two since the last time, as far as the tap could keep it. Runs that the
  // kernel sends in one piece are cut as a receiver would get them.
  std::vector<Packet> take(const End& a, const End& b);
  static bool shows(const std::vector<Packet>& packets, ConstBytes bytes);

 private:
  int fd_ = -1;
  std::string why_not_;
};

}  // namespace weft::hostile
