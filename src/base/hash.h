// TraceHash: folds what crosses the seam into 64 bits. Same seed, same hash, on every compiler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace weft {

class TraceHash {
 public:
  void fold(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9fb21c651e98df25u;
    state_ ^= state_ >> 32;
  }
  // Eight bytes at a time, little-endian whatever the machine.
  void fold(ConstBytes bytes) {
    std::uint64_t word = 0;
    std::size_t filled = 0;
    for (std::byte b : bytes) {
      word |= std::to_integer<std::uint64_t>(b) << (8 * filled);
      if (++filled == 8) {
        fold(word);
        word = 0;
        filled = 0;
      }
    }
    fold(word ^ static_cast<std::uint64_t>(bytes.size()) << 56);
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x243f6a8885a308d3u;
};

}  // namespace weft
