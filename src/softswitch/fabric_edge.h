// FabricEdge: connects a LiveFabric to its hosts; packets go in and out. There are two kinds: links
// of network namespaces (frame_socket.h) and sockets on the loopback (proxy_sockets.h).
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "fabric/address.h"
#include "softswitch/live_fabric.h"

namespace weft::softswitch {

class FabricEdge {
 public:
  virtual ~FabricEdge() = default;

  // A descriptor that is readable when packets have arrived.
  virtual int fd() const = 0;

  struct Incoming {
    fabric::HostPort from{};
    Time at{};            // when the packet arrived, not when receive() was called
    ConstBytes packet{};  // begins with the IP header
  };
  static constexpr std::size_t kBatch = 64;
  // Returns the packets that have arrived, at most out.size(). They are valid until release().
  // `now` is a time of os::clock_now().
  virtual std::size_t receive(Time now, std::span<Incoming> out) = 0;
  // Frees the received packets. Until then fd() may be readable although no new packet arrived.
  virtual void release() = 0;
  // Sends all packets, in order. Packets that the kernel does not accept are counted.
  virtual void send(std::span<const LiveFabric::Delivery> packets) = 0;
  // Sets the carrier (link state) of a host's port.
  virtual Result<void> set_carrier(const fabric::HostPort& port, bool up) = 0;

  struct Counters {
    std::uint64_t too_large = 0;      // frames of more than one packet: offloads are on
    std::uint64_t drops_receive = 0;  // our receive buffer was full
    std::uint64_t drops_send = 0;     // the kernel did not accept the packet
  };
  virtual const Counters& counters() = 0;
};

}  // namespace weft::softswitch
