// Settings of an endpoint in the real world, where sending costs system calls: docs/decisions/0011.
// Shared by all code that opens a real world. Constants that depend on the peer are in peer_kind.h.
#pragma once

#include "base/prng.h"
#include "transport/config.h"

namespace weft::transport {

// The delay of answers for ends that do other work between polls: well below the time after which a
// requestor probes.
inline constexpr Duration kAnswersDelay = Duration::us(250);

// Bits 23-16 of a QPN are the process's slot. The other bits start at random and wrap around
// (docs/decisions/0008).
inline void set_process_qpns(EndpointConfig& config, std::uint16_t process, Prng& prng) {
  config.qpn_bits = 16;
  config.first_qpn = std::uint32_t{process} << 16 | (0x100 + prng.below(0x7000));
}

// Adapts the configuration of a QP to a software process and that kind of peer.
inline void configure_for_process(QpConfig& config, PeerKind peer) {
  config.peer = peer;
  config.nscc.base_rtt = Duration::us(100);
  // Large enough for bursts and for scheduling delays. The receive budget of a software peer bounds
  // the window further.
  config.nscc.cwnd_bytes_max = 2u << 20;
  config.nscc.cwnd_bytes_initial = 256u << 10;
}

}  // namespace weft::transport
