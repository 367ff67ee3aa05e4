// The seeds that every build runs: the first 24, those in tests/sim/seeds.txt, and a new random
// seed.
#include "seeds.h"

#include <iostream>
#include <random>

namespace weft::testing {
namespace {

TEST(Seeds, NoMessageIsLostDuplicatedOrStuckWithTheFirst24Seeds) {
  expect_seeds_hold("fault-mix", {.first = 1, .count = 24});
}

TEST(Seeds, NoMessageIsLostDuplicatedOrStuckWithSeedsThatFoundABug) {
  const auto rows = table_of("tests/sim/seeds.txt");
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 2u) << row[0] << ": expected `scenario seed`";
    expect_seeds_hold(row[0], {.first = std::stoull(row[1]), .count = 1});
  }
}

// Each run draws a new seed and prints it, so that a failure can be repeated. A seed that fails is
// added to seeds.txt.
TEST(Seeds, NoMessageIsLostDuplicatedOrStuckWithANewSeed) {
  std::random_device device;
  const std::uint64_t seed = std::uint64_t{device()} << 16 ^ device();
  std::cout << "new seed: build/weft sim run scenarios/fault-mix.toml --seed " << seed << '\n';
  expect_seeds_hold("fault-mix", {.first = seed, .count = 1});
}

}  // namespace
}  // namespace weft::testing
