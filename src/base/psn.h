// Psn: a 24-bit packet sequence number on a circle. PSNs are compared by distance, never by `<`.
#pragma once

#include <cstdint>

namespace weft {

class Psn {
 public:
  static constexpr std::uint32_t kMask = 0xff'ffff;

  constexpr Psn() = default;
  explicit constexpr Psn(std::uint32_t value) : value_(value & kMask) {}

  constexpr std::uint32_t value() const { return value_; }

  // The signed distance from `other` to this PSN, the shorter one on the circle: -2^23 .. 2^23 - 1.
  constexpr std::int32_t since(Psn other) const {
    return static_cast<std::int32_t>((value_ - other.value_) << 8) >> 8;
  }

  friend constexpr Psn operator+(Psn p, std::int32_t n) {
    return Psn(p.value_ + static_cast<std::uint32_t>(n));
  }
  friend constexpr Psn operator-(Psn p, std::int32_t n) { return p + -n; }
  friend constexpr bool operator==(Psn, Psn) = default;

 private:
  std::uint32_t value_ = 0;
};

static_assert(Psn(0).since(Psn(0xff'ffff)) == 1);
static_assert(Psn(0xff'fffe).since(Psn(1)) == -3);

}  // namespace weft
