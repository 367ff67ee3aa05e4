// `weft lab switch`: the software switch of a scenario's fabric, in this network namespace.
// `weft lab ask`: a request to one that runs.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

// Adds both to the noun `lab`. `status` becomes the exit code of the one that was called.
void add_lab_switch(CLI::App& lab, int& status);

}  // namespace weft::cli
