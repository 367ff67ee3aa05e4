// Thresholds: how many lost packets condemn an EV, given the losses of the QP's other EVs
// (docs/decisions/0003).
//
// With NICs the peer always answers, and loss means a bad path. With software peers, and under
// uniform loss, good EVs lose packets too. So the thresholds rise with the share of packets that
// the QP's other EVs lose. Each is set where chance alone would reach it a few times in a million
// packets.
#pragma once

#include <cstdint>

namespace weft::transport {

// Number of consecutive losses that condemn an EV. `ambient_q16`: the share of packets that the
// QP's other EVs lose, in 1/65,536.
constexpr std::uint32_t losses_in_a_row(std::uint32_t ambient_q16) {
  if (ambient_q16 <= 64) return 2;    // 0.1 %: by chance once in 10^6
  if (ambient_q16 <= 655) return 3;   // 1 %
  if (ambient_q16 <= 2048) return 4;  // 3.1 %
  if (ambient_q16 <= 4096) return 5;  // 6.3 %
  if (ambient_q16 <= 8192) return 7;  // 12.5 %
  if (ambient_q16 <= 16384) return 10;
  return 20;
}

// Number of losses among an EV's last 32 packets that condemn it: by chance some 10^-6 (binomial
// tail), and at least four times the share that the other EVs lose.
constexpr std::uint32_t losses_of_32(std::uint32_t ambient_q16) {
  if (ambient_q16 <= 8) return 2;      // 0.01 %
  if (ambient_q16 <= 64) return 4;     // 0.1 %
  if (ambient_q16 <= 655) return 6;    // 1 %
  if (ambient_q16 <= 2048) return 10;  // 3.1 %
  if (ambient_q16 <= 4096) return 13;  // 6.3 %
  if (ambient_q16 <= 8192) return 18;  // 12.5 %
  return 33;                           // never condemned: all paths are bad
}

// Number of consecutive losses on a whole plane that condemn the plane while other planes deliver.
constexpr std::uint32_t plane_losses_in_a_row(std::uint32_t ambient_q16) {
  return 3 * losses_in_a_row(ambient_q16);
}

}  // namespace weft::transport
