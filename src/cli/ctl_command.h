// `weft ctl`: the functions of mrc_ctl.h as commands (docs/controller.md).
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

void add_ctl_command(CLI::App& app, int& status);

}  // namespace weft::cli
