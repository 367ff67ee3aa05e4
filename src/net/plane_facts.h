// The part of HostFacts that needs sockets: packets that this host sends to itself, interface
// drivers, socket buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/host_facts.h"

namespace weft::net {

// The facts of each plane, in the order of `planes`. Waits 0.2 s for each packet that does not
// arrive.
std::vector<PlaneFacts> plane_facts(std::span<const Ipv6> planes);

// The name of an interface's driver, such as "veth". Empty if the kernel does not say, as for the
// loopback.
std::string driver_of(const std::string& interface);

// Opens a UDP socket with these buffers and returns the sizes granted: half of what the kernel
// reports, so that they compare with the request.
struct SocketBuffers {
  std::uint32_t receive_bytes = 0, send_bytes = 0;
};
struct SocketFacts {
  std::uint64_t receive_bytes = 0, send_bytes = 0;
  bool udp_segment = false, udp_gro = false;
};
SocketFacts socket_facts(const SocketBuffers& asked);

}  // namespace weft::net
