// PsnSet: the PSNs seen in one direction of a QP: all below the first missing one, and some above
// it.
//
// PSNs are converted to indices that never wrap: 0 is the first PSN of the direction, -1 the PSN
// before it. Memory is bounded: at most kSpanMax indices above the first missing one, twice as many
// as the largest MPR allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/psn.h"

namespace weft::judge {

using PsnIndex = std::int64_t;

// The PSN that `index` stands for.
inline Psn psn_of_index(PsnIndex index, Psn first) {
  return Psn(first.value() + static_cast<std::uint32_t>(index));
}

// The index of `psn` that lies nearest to `near`, when index 0 is `first`.
inline PsnIndex index_of_psn(Psn psn, Psn first, PsnIndex near) {
  return near + psn.since(psn_of_index(near, first));
}

class PsnSet {
 public:
  static constexpr PsnIndex kSpanMax = 1 << 16;

  enum class Added : std::uint8_t { kNew, kDuplicate, kTooFar };

  // kTooFar: the index is kSpanMax or more above the first missing one, and is not added.
  Added add(PsnIndex index);
  // Negative indices lie before the first PSN and count as seen.
  bool contains(PsnIndex index) const {
    return index < first_missing_ || (bits_from(index) & 1) != 0;
  }
  // The lowest index that was not seen.
  PsnIndex first_missing() const { return first_missing_; }
  // The number of indices seen above the first missing one.
  PsnIndex count_above() const { return count_above_; }
  // One past the highest index ever seen.
  PsnIndex end() const { return end_; }
  // 64 bits: bit i is set if index `from` + i was seen.
  std::uint64_t bits_from(PsnIndex from) const;

 private:
  std::uint64_t word_at(PsnIndex word) const {
    return words_.empty() ? 0 : words_[static_cast<std::size_t>(word) & (words_.size() - 1)];
  }
  void reserve(PsnIndex span);
  void advance();

  PsnIndex first_missing_ = 0;
  PsnIndex end_ = 0;
  PsnIndex count_above_ = 0;
  // A ring of words whose number is a power of two. Bits outside [first_missing_, first_missing_ + capacity) are 0.
  std::vector<std::uint64_t> words_;
};

}  // namespace weft::judge
