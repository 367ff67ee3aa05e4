// FabricEdge: where a LiveFabric meets its hosts: packets in, packets out. Two kinds: links of
// network namespaces (frame_socket.h) and sockets on the loopback (proxy_sockets.h).
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

  // Can be read when packets are there.
  virtual int fd() const = 0;

  struct Incoming {
    fabric::HostPort from{};
    Time at{};            // when it came, not when we got to look
    ConstBytes packet{};  // from the IP header on
  };
  static constexpr std::size_t kBatch = 64;
  // As many as `out` takes and are there. Valid till release(). `now`: of os::clock_now().
  virtual std::size_t receive(Time now, std::span<Incoming> out) = 0;
  // Gives back what was received. As long as it is not, fd() may be readable for nothing.
  virtual void release() = 0;
  // All of them, in order. What the kernel does not take is counted.
  virtual void send(std::span<const LiveFabric::Delivery> packets) = 0;
  // Takes the carrier from a host's port, or gives it back.
  virtual Result<void> set_carrier(const fabric::HostPort& port, bool up) = 0;

  struct Counters {
    std::uint64_t too_large = 0;      // more than a packet at a time: offloads are on
    std::uint64_t drops_receive = 0;  // our buffer was full
    std::uint64_t drops_send = 0;     // the kernel did not take it
  };
  virtual const Counters& counters() = 0;
};

}  // namespace weft::softswitch
