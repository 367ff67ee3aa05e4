// A scenario from a file.
#pragma once

#include <string>

#include "base/result.h"
#include "scenario/scenario.h"

namespace weft::run {

// Errors: kInvalid: a file that cannot be read, or what scenario::parse says of it.
Result<scenario::Scenario> load_scenario(const std::string& file);

}  // namespace weft::run
