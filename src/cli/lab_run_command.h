// `weft lab run FILE`: a scenario in a lab of its own.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

// Adds `run` to the noun `lab`. If it is called, `status` becomes the exit status.
void add_lab_run(CLI::App& lab, int& status);

}  // namespace weft::cli
