#include "seal/replay_window.h"

#include <gtest/gtest.h>

#include <set>

#include "base/prng.h"

namespace weft::seal {
namespace {

TEST(ReplayWindow, AcceptsEachCounterInTheWindowOnce) {
  ReplayWindow window;
  EXPECT_TRUE(window.is_new(0));
  window.take(0);
  EXPECT_FALSE(window.is_new(0));
  window.take(5000);
  EXPECT_FALSE(window.is_new(5000));
  EXPECT_FALSE(window.is_new(5000 - ReplayWindow::kSize)) << "too old to know";
  EXPECT_TRUE(window.is_new(5001 - ReplayWindow::kSize)) << "the oldest that is known";
  window.take(5001 - ReplayWindow::kSize);
  EXPECT_FALSE(window.is_new(5001 - ReplayWindow::kSize));
  window.take(~std::uint64_t{0} - 1);
  EXPECT_FALSE(window.is_new(5001));
}

// Compares ReplayWindow with a model that remembers all counters.
TEST(ReplayWindow, AgreesWithASetOfAllCountersForAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    ReplayWindow window;
    std::set<std::uint64_t> seen;
    std::uint64_t highest = 0;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint32_t kind = prng.below(100);
      std::uint64_t counter = highest;
      if (kind < 50)
        counter += prng.below(4);
      else if (kind < 97)
        counter -= std::min<std::uint64_t>(counter, prng.below(5000));
      else
        counter += prng.below(9000);
      const bool old =
          seen.empty() ? false : highest - std::min(highest, counter) >= ReplayWindow::kSize;
      const bool is_new = !old && seen.count(counter) == 0;
      ASSERT_EQ(window.is_new(counter), is_new) << "seed " << seed << " counter " << counter;
      if (!is_new) continue;
      window.take(counter);
      seen.insert(counter);
      highest = std::max(highest, counter);
    }
  }
}

}  // namespace
}  // namespace weft::seal
