// `weft sim run` and `weft sim seeds`: run scenarios in the simulator.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

// Adds the `sim` subcommand. If it is called, `status` becomes the exit status.
void add_sim_command(CLI::App& app, int& status);

}  // namespace weft::cli
