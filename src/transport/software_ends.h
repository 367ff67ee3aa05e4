// What endpoints are told when both ends are processes and the wire is the kernel's, in one place for
// everyone who opens a real world: docs/decisions/0011.
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

inline void suit_software(EndpointConfig& config) {
  // A SACK costs as much as a run of packets: one for three of them; the requestor asks for more
  // when its window is small.
  config.sack_bytes = 192u << 10;
  config.sack_holes = Duration::us(300);
  config.sack_quiet = Duration::us(300);
  config.probes_per_ms = 20;  // a tenth of a core
}

inline void suit_software(QpConfig& config) {
  config.budget_unit_bytes = 16u << 10;
  config.nscc.software = true;
  config.nscc.base_rtt = Duration::us(100);
  // Lets bursts form and a scheduler be late; the peer's receive budget bounds it further.
  config.nscc.cwnd_bytes_max = 2u << 20;
  config.nscc.cwnd_bytes_initial = 256u << 10;
}

}  // namespace weft::transport
