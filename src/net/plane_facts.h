// What sockets and planes of this host can do, by trying: the part of HostFacts that sends packets,
// each to this host itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/host_facts.h"

namespace weft::net {

// In the order of `planes`. Waits a fifth of a second for each packet that does not come.
std::vector<PlaneFacts> plane_facts(std::span<const Ipv6> planes);

// The kernel's name of what drives an interface, as "veth"; empty: it does not say, as of the
// loopback.
std::string driver_of(const std::string& interface);

// A UDP socket that asked for these buffers, and what it got: both as asked for, half of what the
// kernel says.
struct SocketBuffers {
  std::uint32_t receive_bytes = 0, send_bytes = 0;
};
struct SocketFacts {
  std::uint64_t receive_bytes = 0, send_bytes = 0;
  bool udp_segment = false, udp_gro = false;
};
SocketFacts socket_facts(const SocketBuffers& asked);

}  // namespace weft::net
