#include "judge/psn_set.h"

#include <algorithm>
#include <bit>

namespace weft::judge {

PsnSet::Added PsnSet::add(PsnIndex index) {
  if (index < first_missing_) return Added::kDuplicate;
  if (index - first_missing_ >= kSpanMax) return Added::kTooFar;
  end_ = std::max(end_, index + 1);
  if (index == first_missing_ && count_above_ == 0) {  // in order, none seen above: no bits to set
    ++first_missing_;
    return Added::kNew;
  }
  reserve(index - first_missing_ + 1);
  std::uint64_t& word = words_[static_cast<std::size_t>(index >> 6) & (words_.size() - 1)];
  const std::uint64_t bit = std::uint64_t{1} << (index & 63);
  if ((word & bit) != 0) return Added::kDuplicate;
  word |= bit;
  ++count_above_;
  if (index == first_missing_) advance();
  return Added::kNew;
}

std::uint64_t PsnSet::bits_from(PsnIndex from) const {
  const PsnIndex below = std::min<PsnIndex>(std::max<PsnIndex>(first_missing_ - from, 0), 64);
  if (below == 64) return ~std::uint64_t{0};
  const std::uint64_t known = (std::uint64_t{1} << below) - 1;
  // From `end_` on the words of the ring belong to lower indices.
  if (count_above_ == 0 || from >= end_) return known;
  const PsnIndex word = from >> 6;
  const int shift = static_cast<int>(from & 63);
  std::uint64_t bits = word_at(word) >> shift;
  if (shift != 0) bits |= word_at(word + 1) << (64 - shift);
  const PsnIndex above = end_ - from;
  if (above < 64) bits &= (std::uint64_t{1} << above) - 1;
  return bits | known;
}

// Makes room for `span` indices from the first missing one on, plus one word because that index may
// lie inside a word.
void PsnSet::reserve(PsnIndex span) {
  const std::size_t wanted = static_cast<std::size_t>(span) / 64 + 2;
  if (wanted <= words_.size()) return;
  std::vector<std::uint64_t> larger(std::bit_ceil(std::max<std::size_t>(wanted, 8)));
  const PsnIndex first = first_missing_ >> 6;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const PsnIndex word = first + static_cast<PsnIndex>(i);
    larger[static_cast<std::size_t>(word) & (larger.size() - 1)] = word_at(word);
  }
  words_ = std::move(larger);
}

void PsnSet::advance() {
  while (count_above_ > 0) {
    std::uint64_t& word =
        words_[static_cast<std::size_t>(first_missing_ >> 6) & (words_.size() - 1)];
    const int shift = static_cast<int>(first_missing_ & 63);
    const int run = std::min(std::countr_one(word >> shift), 64 - shift);
    if (run == 0) return;
    const std::uint64_t passed = run == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << run) - 1;
    word &= ~(passed << shift);
    first_missing_ += run;
    count_above_ -= run;
  }
}

}  // namespace weft::judge
