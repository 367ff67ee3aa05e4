// Every scenario in scenarios/ can run and has a description.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "scenario/faults.h"
#include "scenario/parse.h"
#include "scenario/settings.h"
#include "scenario/workload.h"

namespace weft::scenario {
namespace {

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator("scenarios")) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ScenarioFiles, EveryFileParsesAndMakesAPlan) {
  const auto files = scenario_files();
  ASSERT_FALSE(files.empty()) << "run in the root of the repository";
  for (const auto& path : files) {
    const auto scenario = parse(text_of(path), path.string());
    ASSERT_TRUE(scenario) << scenario.error().message;
    EXPECT_FALSE(scenario->description.empty()) << path;
    EXPECT_EQ(scenario->name, path.stem().string());
    const auto topology = fabric::Topology::make(scenario->topology).value();
    const Plan plan = make_plan(*scenario, topology, Prng(1).fork("workload"));
    EXPECT_GT(plan.ideal, Duration()) << path;
    EXPECT_GT(plan.ops.size(), 0u) << path;
    const FaultPlan faults = make_fault_plan(scenario->faults, topology, {});
    EXPECT_EQ(faults.events.empty(), scenario->faults.empty()) << path;
    const SwitchSpec switches = resolved_switches(*scenario, topology);
    EXPECT_GT(switches.ecn_max_bytes, switches.ecn_min_bytes) << path;
    EXPECT_GE(switches.queue_bytes, switches.ecn_max_bytes) << path;
  }
}

TEST(ScenarioFiles, EveryFileIsListedInTheReadme) {
  const std::string readme = text_of("scenarios/README.md");
  for (const auto& path : scenario_files()) {
    EXPECT_NE(readme.find("`" + path.stem().string() + "`"), std::string::npos)
        << path << " is not in scenarios/README.md";
  }
}

}  // namespace
}  // namespace weft::scenario
