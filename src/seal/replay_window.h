// ReplayWindow: which of the last 4,096 counters of a direction have been seen? Older counters
// count as seen, so that no packet is ever accepted twice.
#pragma once

#include <array>
#include <cstdint>

namespace weft::seal {

class ReplayWindow {
 public:
  static constexpr std::uint64_t kSize = 4096;

  // True: no packet with this counter was seen. Call is_new(), then authenticate the packet, then
  // call take(): the counter of an unauthenticated packet may be forged.
  bool is_new(std::uint64_t counter) const {
    if (counter >= next_) return true;
    if (next_ - counter > kSize) return false;
    return (bits_[word(counter)] >> (counter % 64) & 1) == 0;
  }

  // Marks the counter as seen. REQUIRES is_new(counter), and an authentic packet.
  void take(std::uint64_t counter) {
    if (counter >= next_) {
      // Clear the words that the window enters now. The word that the window had already entered
      // keeps its bits.
      const std::uint64_t from = next_ == 0 ? 0 : (next_ - 1) / 64 + 1;
      const std::uint64_t to = counter / 64;
      if (to >= from) {
        if (to - from >= kWords) {
          bits_.fill(0);
        } else {
          for (std::uint64_t w = from; w <= to; ++w) bits_[w % kWords] = 0;
        }
      }
      next_ = counter + 1;
    }
    bits_[word(counter)] |= std::uint64_t{1} << (counter % 64);
  }

 private:
  // One word more than the window, so that a word that is entered and cleared holds no bits of the
  // window.
  static constexpr std::uint64_t kWords = kSize / 64 + 1;
  static std::size_t word(std::uint64_t counter) {
    return static_cast<std::size_t>(counter / 64 % kWords);
  }

  std::uint64_t next_ = 0;  // one above the largest counter seen
  std::array<std::uint64_t, kWords> bits_{};
};

}  // namespace weft::seal
