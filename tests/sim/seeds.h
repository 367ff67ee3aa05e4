// Runs with a random mix of faults, drawn from a seed: no message may be lost, duplicated or stuck,
// and the judge must have no complaint.
#pragma once

#include <gtest/gtest.h>

#include "../support/run_file.h"

namespace weft::testing {

struct SeedRange {
  std::uint64_t first = 1, count = 0;
};

inline void expect_seeds_hold(const std::string& name, const SeedRange& seeds) {
  const scenario::Scenario scenario = load(name);
  for (std::uint64_t i = 0; i < seeds.count; ++i) {
    const run::Outcome outcome = run(scenario, seeds.first + i);
    ASSERT_TRUE(outcome.held()) << failures(outcome);
  }
}

}  // namespace weft::testing
