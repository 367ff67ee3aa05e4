// Runs each scenario of tests/golden/paper.txt, and checks its numbers against the bounds there.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "table.h"

namespace weft::testing {
namespace {

struct Row {
  std::string figure, scenario, what, least, most;
};

std::vector<Row> rows() {
  std::vector<Row> out;
  for (const auto& c : cells_of("tests/golden/paper.txt", 6)) {
    out.push_back({.figure = c[0], .scenario = c[1], .what = c[2], .least = c[3], .most = c[4]});
  }
  return out;
}

std::vector<std::string> scenarios() {
  std::set<std::string> names;
  for (const Row& row : rows()) names.insert(row.scenario);
  return {names.begin(), names.end()};
}

double share(std::optional<double> part, std::optional<double> whole) {
  return whole.value_or(0) > 0 ? part.value_or(0) / *whole : 0;
}

std::map<std::string, double> numbers_of(const scenario::Results& r) {
  return {{"goodput_share", r.goodput_share},
          {"settled_share", share(r.settled_gbps, r.baseline_gbps)},
          {"recovered_share", share(r.recovered_gbps, r.baseline_gbps)},
          {"fault_free_share", share(r.goodput_gbps, r.facts.fault_free_goodput_gbps)},
          {"jain", r.jain},
          {"victim_share", r.victim_share.value_or(0)},
          {"ev_bad", static_cast<double>(r.facts.ev_bad)},
          {"longest_pause_us", r.longest_pause_us},
          {"qp_errors", static_cast<double>(r.facts.qp_errors)}};
}

class PaperFigure : public ::testing::TestWithParam<std::string> {};

TEST_P(PaperFigure, NumbersAreWithinTheirBounds) {
  const run::Outcome outcome = run(load(GetParam()), 1);
  EXPECT_TRUE(outcome.held()) << failures(outcome);
  const auto numbers = numbers_of(outcome.results);
  for (const Row& row : rows()) {
    if (row.scenario != GetParam()) continue;
    const auto number = numbers.find(row.what);
    ASSERT_NE(number, numbers.end()) << row.what;
    const std::string says =
        fmt::format("figure {}: {} of {} is {:.4g}, expected {} to {}", row.figure, row.what,
                    row.scenario, number->second, row.least, row.most);
    fmt::print("{}\n", says);
    if (row.least != "-") {
      EXPECT_GE(number->second, std::stod(row.least)) << says;
    }
    if (row.most != "-") {
      EXPECT_LE(number->second, std::stod(row.most)) << says;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, PaperFigure, ::testing::ValuesIn(scenarios()), [](const auto& row) {
  std::string name = row.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) == 0 ? '_' : c;
  return name;
});

}  // namespace
}  // namespace weft::testing
