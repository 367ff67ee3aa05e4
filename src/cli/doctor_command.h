// `weft doctor`: what on this host costs speed or safety, and what mends it.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

void add_doctor_command(CLI::App& app, int& status);

}  // namespace weft::cli
