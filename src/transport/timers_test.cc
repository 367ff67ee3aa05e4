#include "transport/timers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/prng.h"

namespace weft::transport {
namespace {

Time at(std::int64_t us) { return Time::from_start(Duration::us(us)); }

TEST(DeadlineHeap, TopOfAnEmptyHeapIsNever) {
  DeadlineHeap heap(4);
  EXPECT_EQ(heap.top(), kNever);
  heap.at_latest(1, kNever);
  heap.set(2, kNever);
  heap.remove(3);
  EXPECT_EQ(heap.top(), kNever);
}

TEST(DeadlineHeap, AtLatestOnlyMovesADeadlineNearer) {
  DeadlineHeap heap(4);
  heap.at_latest(1, at(10));
  heap.at_latest(1, at(20));
  EXPECT_EQ(heap.top(), at(10));
  heap.at_latest(1, at(5));
  EXPECT_EQ(heap.top(), at(5));
  heap.set(1, at(30));
  EXPECT_EQ(heap.top(), at(30));
}

TEST(DeadlineHeap, EqualTimesAreOrderedByIndex) {
  DeadlineHeap heap(8);
  for (std::uint32_t i : {5u, 2u, 7u, 3u}) heap.set(i, at(1));
  for (std::uint32_t i : {2u, 3u, 5u, 7u}) {
    EXPECT_EQ(heap.top_index(), i);
    heap.remove(i);
  }
}

// Compared with a plain table: the top is always the least (time, index), whatever calls were made.
TEST(DeadlineHeap, TopIsAlwaysTheEarliestDeadline) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    const std::uint32_t count = 1 + prng.below(64);
    DeadlineHeap heap(count);
    std::vector<Time> table(count, kNever);
    for (int step = 0; step < 3000; ++step) {
      const std::uint32_t i = prng.below(count);
      const Time t = at(prng.below(50));
      switch (prng.below(4)) {
        case 0:
          heap.at_latest(i, t);
          table[i] = std::min(table[i], t);
          break;
        case 1:
          heap.set(i, t);
          table[i] = t;
          break;
        case 2:
          heap.remove(i);
          table[i] = kNever;
          break;
        default:
          heap.set(i, kNever);
          table[i] = kNever;
      }
      const auto least = std::min_element(table.begin(), table.end());
      ASSERT_EQ(heap.top(), *least);
      if (*least != kNever) {
        ASSERT_EQ(heap.top_index(), static_cast<std::uint32_t>(least - table.begin()));
      }
    }
  }
}

}  // namespace
}  // namespace weft::transport
