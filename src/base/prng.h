// Prng: the generator of every random number of a run (SplitMix64). Each purpose forks a stream of
// its own, so that a new draw in one place does not change the draws elsewhere. Std distributions
// are not used: their values differ between libraries.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/assert.h"

namespace weft {

class Prng {
 public:
  explicit constexpr Prng(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    return mix(state_);
  }

  // Uniform in 0 .. bound-1 (bias below 2^-32). REQUIRES bound > 0.
  constexpr std::uint32_t below(std::uint32_t bound) {
    WEFT_ASSERT(bound > 0);
    return static_cast<std::uint32_t>((next() >> 32) * bound >> 32);
  }

  // True with probability share / 2^32.
  constexpr bool chance(std::uint64_t share_of_2_32) { return (next() >> 32) < share_of_2_32; }

  // An independent stream. The same parent, purpose and index always give the same stream.
  constexpr Prng fork(std::string_view purpose, std::uint64_t index = 0) const {
    std::uint64_t h = mix(state_ ^ 0x8ebc6af09c88c6e3u);
    for (char c : purpose) h = mix(h ^ static_cast<unsigned char>(c));
    return Prng(mix(h ^ mix(index + 0x589965cc75374cc3u)));
  }

 private:
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

// Converts a probability from parts per million to the parts of 2^32 that chance() takes.
constexpr std::uint64_t chance_from_ppm(std::uint64_t ppm) { return (ppm << 32) / 1'000'000; }

}  // namespace weft
