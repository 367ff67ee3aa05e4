// TraceHash folds everything that crosses the seam in a run into 64 bits. The same scenario and
// seed give the same hash with every compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace weft {

class TraceHash {
 public:
  void fold(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9fb21c651e98df25u;
    state_ ^= state_ >> 32;
  }
  // Reads words of eight bytes in little-endian order; base/bytes.h asserts such a machine.
  void fold(ConstBytes bytes) {
    std::size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) {
      std::uint64_t word;
      std::memcpy(&word, bytes.data() + at, 8);
      fold(word);
    }
    std::uint64_t rest = static_cast<std::uint64_t>(bytes.size()) << 56;
    for (std::size_t i = at; i < bytes.size(); ++i) {
      rest ^= std::to_integer<std::uint64_t>(bytes[i]) << (8 * (i - at));
    }
    fold(rest);
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x243f6a8885a308d3u;
};

}  // namespace weft
