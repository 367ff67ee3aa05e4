// Rate: bits per second, and how long bytes take at that rate. Arithmetic is in integers, with a
// resolution of 2^-20 ps per byte.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "base/time.h"

namespace weft {

class Rate {
 public:
  constexpr Rate() = default;
  // REQUIRES bits_per_second >= 1 Mb/s: slower links would overflow the fixed point.
  static constexpr Rate bps(std::uint64_t bits_per_second) {
    WEFT_ASSERT(bits_per_second >= 1'000'000);
    Rate r;
    r.bps_ = bits_per_second;
    r.ps_per_byte_q20_ = static_cast<std::uint64_t>(
        (static_cast<unsigned __int128>(8'000'000'000'000) << 20) / bits_per_second);
    return r;
  }
  static constexpr Rate gbps(std::uint64_t n) { return bps(n * 1'000'000'000); }

  constexpr std::uint64_t bits_per_second() const { return bps_; }
  constexpr Duration time_for(std::uint64_t bytes) const {
    return Duration::ps(
        static_cast<std::int64_t>(static_cast<unsigned __int128>(bytes) * ps_per_byte_q20_ >> 20));
  }
  // Bytes that fit into `d`, rounded down. REQUIRES d >= 0.
  constexpr std::uint64_t bytes_in(Duration d) const {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(d.ps()) * bps_ /
                                      8'000'000'000'000u);
  }
  friend constexpr bool operator==(Rate, Rate) = default;

 private:
  std::uint64_t bps_ = 0;
  std::uint64_t ps_per_byte_q20_ = 0;
};

static_assert(Rate::gbps(800).time_for(64) == Duration::ps(640));

}  // namespace weft
