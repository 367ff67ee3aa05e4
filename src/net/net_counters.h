// The counters net.* of a world, without those of shared memory.
#pragma once

#include <array>
#include <cstdint>

#include "base/counters.h"
#include "wire/drop_reason.h"

namespace weft::net {

struct NetCounters {
  PerPlane packets_sent{}, packets_received{};
  std::uint64_t sends = 0, receives = 0;
  std::uint64_t sends_held = 0;  // the send buffer was full; the send is retried later
  std::uint64_t drops_send = 0;  // the kernel refused them
  // Runs dropped because our receive buffer was full, as the kernel counts.
  PerPlane drops_host{};
  std::uint64_t refusals = 0;                         // ICMP answers: no such process
  std::uint64_t hellos_sent = 0, waits_for_keys = 0;  // waits: packets not sent for lack of keys
  // On port 4791, in place of a process that has gone.
  std::uint64_t host_requests = 0, host_strays = 0;
  // By reason, as far as this layer drops; the node counts its own.
  std::array<std::uint64_t, kDropReasonCount> drops{};

  void drop(DropReason reason) { ++drops[static_cast<std::size_t>(reason)]; }
};

}  // namespace weft::net
