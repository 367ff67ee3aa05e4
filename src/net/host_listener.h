// HostListener: port 4791 in every plane, in place of the process of slot 0 that has gone.
//
// Requests for a host and not for one of its processes (EV probes, port status) go to port 4791.
// Every other process tries twice a second to bind that port; the one that succeeds answers the
// requests besides its own work. Its own QPs stay on its own port. A new process finds the port
// taken and takes another slot.
//
// While a process holds the port, the kernel refuses nothing there, and peers of the process that
// has gone would wait for long. So a packet for one of its QPs makes the holder release the port
// for a moment, so that the next packet is refused (docs/decisions/0019).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "os/udp_socket.h"

namespace weft::net {

class HostListener {
 public:
  // Tries from then on to bind these addresses, one a plane.
  void start(Time now, std::vector<Ipv6> addresses);
  Time next_try() const { return next_try_; }
  bool is_open() const { return !sockets_.empty(); }
  // The socket of each plane; empty: it is not open.
  std::span<os::UdpSocket> sockets() { return sockets_; }

  // Binds the port in all planes, in their order: of several processes that try at once, the one
  // that gets the first plane gets the others too. False: the port is taken; it tries again later.
  bool open(Time now);
  void close(Time now);
  // Packets arrived that are not requests. Releases the port, unless it was bound a moment ago:
  // strangers' packets cannot keep it closed.
  void on_strays(Time now);

  // For a forked child: as UdpWorld::abandon().
  void abandon() const;

 private:
  std::vector<Ipv6> addresses_;
  std::vector<os::UdpSocket> sockets_;
  Time next_try_ = kNever, opened_at_;
};

}  // namespace weft::net
