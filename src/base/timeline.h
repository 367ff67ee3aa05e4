// Timeline: the arrival times of bytes: bytes per millisecond, and every gap that a user would
// notice. Bounded: bytes that arrive after the last bin are counted in the last bin.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"

namespace weft::base {

class Timeline {
 public:
  static constexpr Duration kBin = Duration::ms(1);
  static constexpr Duration kGapMin = Duration::us(500);
  struct Gap {
    Time from{};
    Duration length{};
  };

  Timeline(Time start, Duration length)
      : start_(start), last_(start), bins_(static_cast<std::size_t>(length.ps() / kBin.ps()) + 1) {
    gaps_.reserve(kGapsMax);
  }

  void add(Time at, std::uint64_t bytes) {
    const auto bin = static_cast<std::size_t>((at - start_).ps() / kBin.ps());
    bins_[bin < bins_.size() ? bin : bins_.size() - 1] += bytes;
    if (at - last_ >= kGapMin && gaps_.size() < kGapsMax) gaps_.push_back({last_, at - last_});
    last_ = at;
  }

  Time start() const { return start_; }
  const std::vector<std::uint64_t>& bins() const { return bins_; }
  const std::vector<Gap>& gaps() const { return gaps_; }

 private:
  static constexpr std::size_t kGapsMax = 1u << 16;
  Time start_, last_;
  std::vector<std::uint64_t> bins_;
  std::vector<Gap> gaps_;
};

}  // namespace weft::base
