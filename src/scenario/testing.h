// Builds scenarios for the tests of this folder from text in the test.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fabric/topology.h"
#include "scenario/parse.h"
#include "scenario/scenario.h"

namespace weft::scenario {

// 16 hosts, four under each T0, four T1s, two planes of 100 Gb/s. `more` is further text of the
// file; it begins with a table such as [workload].
inline Scenario small_scenario(std::string_view more) {
  const auto parsed = parse(
      "[topology]\nshape = \"two-tier\"\nhosts = 16\nhosts_per_t0 = 4\nt1_count = 4\nplanes = 2\n"
      "host_rate = \"100Gbps\"\n" +
          std::string(more),
      "test.toml");
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed ? *parsed : Scenario{};
}

inline fabric::Topology topology_of(const Scenario& scenario) {
  return fabric::Topology::make(scenario.topology).value();
}

}  // namespace weft::scenario
