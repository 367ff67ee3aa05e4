// Compares each row of tests/golden/htsim.txt: our result is within the tolerance of htsim's, or
// the row declares the difference.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "config/names.h"
#include "table.h"

namespace weft::testing {
namespace {

constexpr double kOursTolerance = 0.02;

struct Row {
  std::string name, scenario, policy, what, kind;
  std::uint64_t seeds = 0;
  double htsim = 0, within = 0, ours = 0;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

std::vector<Row> rows() {
  std::vector<Row> out;
  for (const auto& c : cells_of("tests/golden/htsim.txt", 9)) {
    out.push_back({.name = c[0],
                   .scenario = c[1],
                   .policy = c[2],
                   .what = c[4],
                   .kind = c[8],
                   .seeds = std::stoull(c[3]),
                   .htsim = std::stod(c[5]),
                   .within = std::stod(c[6]) / 100,
                   .ours = std::stod(c[7])});
  }
  return out;
}

std::optional<double> measured(const std::string& what, const run::Outcome& outcome) {
  const scenario::Results& r = outcome.results;
  if (what == "max_us") return r.fct_us.max;
  if (what == "over_ideal") return r.slowest_over_ideal;
  if (what == "trims_per_packet") {
    return static_cast<double>(r.facts.trims) /
           static_cast<double>(counter(outcome, "transport.packets_placed"));
  }
  return std::nullopt;
}

double median_of(const Row& row) {
  scenario::Scenario scenario = load(row.scenario);
  const auto policy = config::value_named(scenario::kPolicyNames, row.policy);
  EXPECT_TRUE(policy) << row.policy;
  scenario.transport.policy = policy.value_or(scenario.transport.policy);
  std::vector<double> values;
  for (std::uint64_t seed = 1; seed <= row.seeds; ++seed) {
    const run::Outcome outcome = run(scenario, seed);
    EXPECT_EQ(outcome.results.completed, outcome.results.flows) << failures(outcome);
    const auto value = measured(row.what, outcome);
    EXPECT_TRUE(value) << row.what << " is not a known quantity";
    values.push_back(value.value_or(0));
  }
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class AgainstHtsim : public ::testing::TestWithParam<Row> {};

TEST_P(AgainstHtsim, AgreesOrDiffersAsDeclared) {
  const Row& row = GetParam();
  ASSERT_GE(row.seeds, 3u);
  const double value = median_of(row);
  const double off = value / row.htsim - 1;
  RecordProperty("ours", fmt::format("{:.4g}", value));
  const std::string says =
      fmt::format("{}: {:.4g}, htsim {:.4g} ({:+.1f} %, allowed {:.0f} %), table says {:.4g}",
                  row.name, value, row.htsim, off * 100, row.within * 100, row.ours);
  fmt::print("{}\n", says);
  EXPECT_LE(std::abs(value / row.ours - 1), kOursTolerance) << says;
  if (row.kind == "agrees") {
    EXPECT_LE(std::abs(off), row.within) << says;
  } else {
    EXPECT_EQ(row.kind, "declared");
    EXPECT_GT(std::abs(off), row.within) << says << ": it agrees, nothing needs to be declared";
  }
}

INSTANTIATE_TEST_SUITE_P(, AgainstHtsim, ::testing::ValuesIn(rows()), [](const auto& row) {
  std::string name = row.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Expects that the measured values of these rows decrease from row to row.
void expect_falling(const std::vector<std::string>& names) {
  double before = 0;
  for (const std::string& name : names) {
    const auto all = rows();
    const auto row =
        std::find_if(all.begin(), all.end(), [&](const Row& r) { return r.name == name; });
    ASSERT_NE(row, all.end()) << name;
    const double value = median_of(*row);
    if (before > 0) {
      EXPECT_LT(value, before) << name;
    }
    before = value;
  }
}

// Load-balancing policies rank in the same order as in htsim.
TEST(AgainstHtsimOrder, PoliciesRankAsInHtsimOnAHealthyFabric) {
  expect_falling({"permutation-single-path", "permutation-oblivious", "permutation-mrc",
                  "permutation-reps-1-1"});
}

TEST(AgainstHtsimOrder, PoliciesRankAsInHtsimWithSlowLinks) {
  expect_falling({"slow-links-oblivious", "slow-links-mrc", "slow-links-reps-1-1"});
}

TEST(AgainstHtsimOrder, MorePathsAreFaster) {
  expect_falling({"paths-1", "paths-4", "paths-16", "paths-64", "paths-256", "paths-1024"});
}

}  // namespace
}  // namespace weft::testing
