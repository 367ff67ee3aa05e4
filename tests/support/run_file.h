// Scenario files for tests: reads a file, runs it, and describes failures with the command that
// repeats the run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "run/run_scenario.h"
#include "scenario/parse.h"

namespace weft::testing {

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << " cannot be read: tests run in the root of the repository";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The names of all scenarios, in order.
inline std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("scenarios", none)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string path_of(const std::string& name) { return "scenarios/" + name + ".toml"; }

inline scenario::Scenario parsed(const std::string& toml, const std::string& name) {
  auto result = scenario::parse(toml, name + ".toml");
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? std::move(result).value() : scenario::Scenario{};
}

inline scenario::Scenario load(const std::string& name) {
  return parsed(text_of(path_of(name)), name);
}

inline run::Outcome run(const scenario::Scenario& scenario, const run::RunOptions& options) {
  auto outcome = run::run_scenario(scenario, options);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
  return outcome ? std::move(outcome).value() : run::Outcome{};
}

inline run::Outcome run(const scenario::Scenario& scenario, std::uint64_t seed) {
  run::RunOptions options;
  options.seed = seed;
  return run(scenario, options);
}

inline std::uint64_t counter(const run::Outcome& outcome, std::string_view name) {
  if (!has_counter(outcome.counters, name)) ADD_FAILURE() << "no counter " << name;
  return value_of(outcome.counters, name);
}

// The text of all failed expectations, with the command that repeats the run.
inline std::string failures(const run::Outcome& outcome) {
  std::ostringstream out;
  for (const std::string& line : outcome.faults) out << "fault: " << line << '\n';
  for (const std::string& line : outcome.stuck) out << "stuck: " << line << '\n';
  for (const judge::Complaint& c : outcome.complaints)
    out << "judge: " << judge::to_string(c) << '\n';
  for (const std::string& line : outcome.broken) out << "expected: " << line << '\n';
  out << "repeat: build/weft sim run " << path_of(outcome.results.scenario) << " --seed "
      << outcome.results.facts.seed << '\n';
  return out.str();
}

// The lines of a text file, each as its words, without comments and empty lines.
inline std::vector<std::vector<std::string>> table_of(const std::string& path) {
  std::istringstream text(text_of(path));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::vector<std::string> row;
    for (std::string word; words >> word;) row.push_back(word);
    if (!row.empty()) rows.push_back(row);
  }
  return rows;
}

}  // namespace weft::testing
