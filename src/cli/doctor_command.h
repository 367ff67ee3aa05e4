// `weft doctor`: reports what on this host reduces speed or safety, and how to repair it.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

void add_doctor_command(CLI::App& app, int& status);

}  // namespace weft::cli
