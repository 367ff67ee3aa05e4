// parse: turns the text of a scenario file into a Scenario, or into one line for a person:
// "FILE:LINE:COL: what is wrong; expected ...". The format: docs/scenarios.md.
#pragma once

#include <string_view>

#include "base/result.h"
#include "scenario/scenario.h"

namespace weft::scenario {

// `file_name` is used in messages; its last part without .toml becomes the scenario's name. A
// returned Scenario can run: its topology is valid, and its workload and faults name only hosts,
// links and switches that exist.
Result<Scenario> parse(std::string_view toml, std::string_view file_name);

}  // namespace weft::scenario
