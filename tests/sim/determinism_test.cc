// The same scenario and seed must give the same trace hash: in a second run of the same process,
// after other runs, and in every build. The expected hashes are in tests/sim/hashes.txt, which
// tools/same-hash writes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../support/run_file.h"

namespace weft::testing {
namespace {

std::uint64_t hash_of(const scenario::Scenario& scenario, std::uint64_t seed) {
  run::RunOptions options;
  options.seed = seed;
  options.baseline = false;
  return run(scenario, options).results.facts.trace_hash;
}

TEST(Determinism, TheSameSeedGivesTheSameHashAfterOtherRuns) {
  const auto mix = load("fault-mix"), ring = load("tree-16");
  const std::uint64_t once = hash_of(mix, 3);
  EXPECT_EQ(hash_of(mix, 3), once);
  hash_of(ring, 1);
  hash_of(mix, 4);
  EXPECT_EQ(hash_of(mix, 3), once);
}

TEST(Determinism, AnotherSeedGivesAnotherHash) {
  const auto mix = load("fault-mix");
  EXPECT_NE(hash_of(mix, 3), hash_of(mix, 4));
}

// The judge and the memory check only observe; they must not change the run.
TEST(Determinism, JudgeAndMemoryChecksDoNotChangeTheHash) {
  auto scenario = load("first-ack-lost");
  const std::uint64_t judged = hash_of(scenario, 1);
  scenario.run.judge = false;
  scenario.run.memory = scenario::MemoryKind::kNone;
  EXPECT_EQ(hash_of(scenario, 1), judged);
}

TEST(Determinism, GoldenHashesAreReproduced) {
  const auto rows = table_of("tests/sim/hashes.txt");
  ASSERT_GE(rows.size(), 12u);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 3u) << row[0] << ": expected `scenario seed hash`";
    EXPECT_EQ(fmt::format("{:016x}", hash_of(load(row[0]), std::stoull(row[1]))), row[2])
        << row[0] << " with seed " << row[1]
        << ": if every build gives this hash and the change is intended, run"
           " tools/same-hash --write build";
  }
}

}  // namespace
}  // namespace weft::testing
