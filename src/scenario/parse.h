// parse(): converts the text of a scenario file to a Scenario, or to an error message of one line:
// "FILE:LINE:COL: what is wrong; expected ...". The format: docs/scenarios.md.
#pragma once

#include <string_view>

#include "base/result.h"
#include "scenario/scenario.h"

namespace weft::scenario {

// `file_name` appears in messages; its last part without ".toml" becomes the scenario's name. A
// returned Scenario can be run: its topology is valid, and its workload and faults name only hosts,
// links and switches that exist.
Result<Scenario> parse(std::string_view toml, std::string_view file_name);

}  // namespace weft::scenario
