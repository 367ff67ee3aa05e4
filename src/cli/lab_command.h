// `weft lab up|status|fault|heal|exec|down`: a scenario's fabric in network namespaces.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

// Adds the `lab` subcommand. If it is called, `status` becomes the exit status.
void add_lab_command(CLI::App& app, int& status);

}  // namespace weft::cli
