// The seeds that every build runs: the first few, those of tests/sim/seeds.txt, and a fresh one.
#include "seeds.h"

#include <iostream>
#include <random>

namespace weft::testing {
namespace {

TEST(Seeds, TheFirst) { expect_seeds_hold("fault-mix", {.first = 1, .count = 24}); }

TEST(Seeds, ThoseThatFoundSomething) {
  const auto rows = table_of("tests/sim/seeds.txt");
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 2u) << row[0] << ": expected `scenario seed`";
    expect_seeds_hold(row[0], {.first = std::stoull(row[1]), .count = 1});
  }
}

// Never the same twice: what it finds is repeated with the seed that it prints, and joins
// seeds.txt.
TEST(Seeds, AFreshOne) {
  std::random_device device;
  const std::uint64_t seed = std::uint64_t{device()} << 16 ^ device();
  std::cout << "fresh seed: build/weft sim run scenarios/fault-mix.toml --seed " << seed << '\n';
  expect_seeds_hold("fault-mix", {.first = seed, .count = 1});
}

}  // namespace
}  // namespace weft::testing
