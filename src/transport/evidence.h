// How much loss condemns an EV, given what its siblings suffer (docs/decisions/0003).
//
// In hardware the peer always answers and loss means a bad path. In software, and under uniform
// loss, losses fall on good EVs too. So the bar rises with the share of packets that the QP's other
// EVs lose: each bar is where chance alone would reach it a few times in a million packets.
#pragma once

#include <cstdint>

namespace weft::transport {

// Losses in a row, none arriving between, that condemn an EV. `ambient_q16`: the share that its
// siblings lose, of 65,536.
constexpr std::uint32_t losses_in_a_row(std::uint32_t ambient_q16) {
  if (ambient_q16 <= 64) return 2;    // 0.1 %: 10^-6
  if (ambient_q16 <= 655) return 3;   // 1 %
  if (ambient_q16 <= 2048) return 4;  // 3.1 %
  if (ambient_q16 <= 4096) return 5;  // 6.3 %
  if (ambient_q16 <= 8192) return 7;  // 12.5 %
  if (ambient_q16 <= 16384) return 10;
  return 20;
}

// Losses among an EV's last 32 packets that condemn it: a binomial tail of some 10^-6, and at least
// four times the share of the siblings.
constexpr std::uint32_t losses_of_32(std::uint32_t ambient_q16) {
  if (ambient_q16 <= 8) return 2;      // 0.01 %
  if (ambient_q16 <= 64) return 4;     // 0.1 %
  if (ambient_q16 <= 655) return 6;    // 1 %
  if (ambient_q16 <= 2048) return 10;  // 3.1 %
  if (ambient_q16 <= 4096) return 13;  // 6.3 %
  if (ambient_q16 <= 8192) return 18;  // 12.5 %
  return 33;                           // never: all paths are bad
}

// Losses in a row over a whole plane, none arriving, while other planes deliver.
constexpr std::uint32_t plane_losses_in_a_row(std::uint32_t ambient_q16) {
  return 3 * losses_in_a_row(ambient_q16);
}

}  // namespace weft::transport
