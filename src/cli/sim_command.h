// `weft sim run` and `weft sim seeds`: scenarios in the simulated world.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

// Adds the `sim` subcommand; when it was given, `status` is the exit status.
void add_sim_command(CLI::App& app, int& status);

}  // namespace weft::cli
