// parse: the text of a scenario file to a Scenario, or one line for a person:
// "FILE:LINE:COL: what is wrong; expected ...". The format: docs/scenarios.md.
#pragma once

#include <string_view>

#include "base/result.h"
#include "scenario/scenario.h"

namespace weft::scenario {

// `file_name` is used in messages, and its last part without .toml becomes the scenario's name. A
// Scenario that comes back can run: its topology exists, and its workload and faults name only what
// is there.
Result<Scenario> parse(std::string_view toml, std::string_view file_name);

}  // namespace weft::scenario
