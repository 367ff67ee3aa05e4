// Reads a scenario from a file.
#pragma once

#include <string>

#include "base/result.h"
#include "scenario/scenario.h"

namespace weft::run {

// Errors: kInvalid, if the file cannot be read or scenario::parse() refuses its text.
Result<scenario::Scenario> load_scenario(const std::string& file);

}  // namespace weft::run
