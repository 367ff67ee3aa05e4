// The configuration of a process whose wire is the kernel's, in one place for all that open a real
// world: docs/decisions/0011. Constants that depend on the peer are in peer_kind.h.
#pragma once

#include "base/prng.h"
#include "transport/config.h"

namespace weft::transport {

// For ends that answer their peers between posts: well below what a requestor waits before it asks.
inline constexpr Duration kAnswersDelay = Duration::us(250);

// Bits 23-16 of a QPN are the process's slot; the rest starts anywhere and goes round
// (docs/decisions/0008).
inline void number_qps(EndpointConfig& config, std::uint16_t process, Prng& prng) {
  config.qpn_bits = 16;
  config.first_qpn = std::uint32_t{process} << 16 | (0x100 + prng.below(0x7000));
}

// A QP of a process, to a peer of that kind.
inline void suit_process(QpConfig& config, PeerKind peer) {
  config.peer = peer;
  config.nscc.base_rtt = Duration::us(100);
  // Lets bursts form and a scheduler be late; the receive budget of a software peer bounds it
  // further.
  config.nscc.cwnd_bytes_max = 2u << 20;
  config.nscc.cwnd_bytes_initial = 256u << 10;
}

}  // namespace weft::transport
