// Divider divides by a number known in advance, with one multiplication. The simulator decodes a
// link id at every hop of every packet; a division instruction would cost as much as the rest of
// the decoding.
//
// With m = floor((2^64 - 1) / d), floor(n / d) = floor(m * (n + 1) / 2^64) for all 32-bit n and d
// >= 1: the error of m is below d / 2^64, and (n + 1) * d <= 2^64.
#pragma once

#include <cstdint>
#include <limits>

#include "base/assert.h"

namespace weft::fabric {

class Divider {
 public:
  constexpr Divider() : Divider(1) {}
  // REQUIRES divisor > 0.
  explicit constexpr Divider(std::uint32_t divisor) : divisor_(divisor) {
    WEFT_ASSERT(divisor > 0);
    multiplier_ = std::numeric_limits<std::uint64_t>::max() / divisor;
  }

  constexpr std::uint32_t divisor() const { return divisor_; }
  constexpr std::uint32_t quotient(std::uint32_t n) const {
    const auto product = static_cast<unsigned __int128>(multiplier_) * (std::uint64_t{n} + 1);
    return static_cast<std::uint32_t>(product >> 64);
  }
  constexpr std::uint32_t remainder(std::uint32_t n) const { return n - quotient(n) * divisor_; }

 private:
  std::uint64_t multiplier_ = 0;
  std::uint32_t divisor_ = 1;
};

static_assert(Divider(1).quotient(0xffff'ffff) == 0xffff'ffff);
static_assert(Divider(0xffff'ffff).quotient(0xffff'fffe) == 0);
static_assert(Divider(7).remainder(0xffff'ffff) == 0xffff'ffffu % 7);

}  // namespace weft::fabric
