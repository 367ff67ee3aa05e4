// The net.* counters of a UdpWorld, without those of shared memory.
#pragma once

#include <array>
#include <cstdint>

#include "base/counters.h"
#include "wire/drop_reason.h"

namespace weft::net {

struct NetCounters {
  PerPlane packets_sent{}, packets_received{};
  std::uint64_t sends = 0, receives = 0;
  std::uint64_t sends_held = 0;  // send buffer full; the packet is sent later
  std::uint64_t drops_send = 0;  // packets that the kernel refused to send
  // Runs that the kernel dropped because our receive buffer was full.
  PerPlane drops_host{};
  std::uint64_t refusals = 0;  // ICMP reports that a peer's UDP port is closed
  // waits_for_keys: packets not sent for lack of keys.
  std::uint64_t hellos_sent = 0, waits_for_keys = 0;
  // Packets at port 4791 in place of an ended process: requests for the host, and all others.
  std::uint64_t host_requests = 0, host_strays = 0;
  // Packets that this layer dropped, by reason; the node counts its own drops.
  std::array<std::uint64_t, kDropReasonCount> drops{};

  void drop(DropReason reason) { ++drops[static_cast<std::size_t>(reason)]; }
};

}  // namespace weft::net
