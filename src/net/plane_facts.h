// The part of HostFacts that is found out by sending packets, each to this host itself: what the
// sockets and planes of this host can do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/host_facts.h"

namespace weft::net {

// In the order of `planes`. Waits a fifth of a second for each packet that does not arrive.
std::vector<PlaneFacts> plane_facts(std::span<const Ipv6> planes);

// The name of an interface's driver, such as "veth". Empty: the kernel does not say, as for the
// loopback.
std::string driver_of(const std::string& interface);

// Opens a UDP socket with these buffers and returns the sizes given: half of what the kernel
// reports, to be compared with the request.
struct SocketBuffers {
  std::uint32_t receive_bytes = 0, send_bytes = 0;
};
struct SocketFacts {
  std::uint64_t receive_bytes = 0, send_bytes = 0;
  bool udp_segment = false, udp_gro = false;
};
SocketFacts socket_facts(const SocketBuffers& asked);

}  // namespace weft::net
