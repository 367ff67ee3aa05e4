#include "judge/psn_set.h"

#include <gtest/gtest.h>

#include <set>

#include "base/prng.h"

namespace weft::judge {
namespace {

TEST(PsnSet, ConvertsPsnsToIndicesAcrossTheWrap) {
  EXPECT_EQ(index_of_psn(Psn(0xfffffe), Psn(0xfffffe), 0), 0);
  EXPECT_EQ(index_of_psn(Psn(3), Psn(0xfffffe), 0), 5);
  EXPECT_EQ(index_of_psn(Psn(0xfffffd), Psn(0xfffffe), 0), -1);
  EXPECT_EQ(index_of_psn(Psn(7), Psn(0), (PsnIndex{5} << 24) - 1), (PsnIndex{5} << 24) + 7);
}

TEST(PsnSet, AddingInOrderMovesTheFirstMissingIndex) {
  PsnSet set;
  for (PsnIndex i = 0; i < 1000; ++i) EXPECT_EQ(set.add(i), PsnSet::Added::kNew);
  EXPECT_EQ(set.first_missing(), 1000);
  EXPECT_EQ(set.add(999), PsnSet::Added::kDuplicate);
  EXPECT_EQ(set.add(1000 + PsnSet::kSpanMax), PsnSet::Added::kTooFar);
  EXPECT_TRUE(set.contains(-1));
  EXPECT_FALSE(set.contains(1000));
}

TEST(PsnSet, BehavesAsAStdSetUnderRandomAdditions) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Prng prng(seed);
    PsnSet set;
    std::set<PsnIndex> plain;
    const std::uint32_t spread = 1 + prng.below(3000);
    for (int step = 0; step < 5000; ++step) {
      const PsnIndex index = set.first_missing() + prng.below(spread);
      const bool is_new = plain.insert(index).second;
      ASSERT_EQ(set.add(index) == PsnSet::Added::kNew, is_new);
      if (prng.below(4) == 0) {
        const PsnIndex first_missing = set.first_missing();
        if (plain.insert(first_missing).second) set.add(first_missing);
      }
      const PsnIndex from = set.first_missing() - 70 + prng.below(spread + 200);
      std::uint64_t bits = 0;
      for (PsnIndex i = 0; i < 64; ++i) {
        if (from + i < 0 || plain.contains(from + i)) bits |= std::uint64_t{1} << i;
      }
      ASSERT_EQ(set.bits_from(from), bits);
    }
    PsnIndex first_missing = 0;
    while (plain.contains(first_missing)) ++first_missing;
    EXPECT_EQ(set.first_missing(), first_missing);
    EXPECT_EQ(set.count_above(), static_cast<PsnIndex>(plain.size()) - first_missing);
    EXPECT_EQ(set.end(), *plain.rbegin() + 1);
  }
}

}  // namespace
}  // namespace weft::judge
