// HostListener: UDP port 4791 in every plane, for a host whose process of slot 0 has ended.
//
// EV probes and port status updates concern a whole host and go to its port 4791, which the process
// of slot 0 has. After its end every other process tries twice a second to bind that port. The
// process that succeeds answers these requests besides its own work. Its own QPs stay on its own
// port. A process that starts now finds port 4791 taken and uses another slot.
//
// While a process holds the port, the kernel refuses nothing there, so peers of the ended process
// would learn of its end only by timeout. So a packet for one of its QPs makes the holder release
// the port for a moment, and the kernel refuses the next packet (docs/decisions/0019).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "os/udp_socket.h"

namespace weft::net {

class HostListener {
 public:
  // From `now` on tries to bind port 4791 at these addresses, one for each plane.
  void start(Time now, std::vector<Ipv6> addresses);
  Time next_try() const { return next_try_; }
  bool is_open() const { return !sockets_.empty(); }
  // The socket of each plane; empty while the port is not bound.
  std::span<os::UdpSocket> sockets() { return sockets_; }

  // Binds the port in all planes, in order. If several processes try at once, the process that
  // binds plane 0 binds the others too. False: the port is taken, and the next attempt comes later.
  bool open(Time now);
  void close(Time now);
  // Packets arrived that are not requests for the host. Releases the port, unless it was bound less
  // than a second ago, so that packets from strangers cannot keep the port unbound.
  void on_strays(Time now);

  // For a forked child: closes the sockets, as UdpWorld::abandon() does.
  void abandon() const;

 private:
  std::vector<Ipv6> addresses_;
  std::vector<os::UdpSocket> sockets_;
  Time next_try_ = kNever, opened_at_;
};

}  // namespace weft::net
