// `weft conformance`: runs the conformance tests against any lib_mrc.so and its device.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

// Adds the `conformance` subcommand. If it is called, `status` becomes the exit status.
void add_conformance_command(CLI::App& app, int& status);

}  // namespace weft::cli
