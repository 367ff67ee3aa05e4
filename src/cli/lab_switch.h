// `weft lab switch`: runs the software switch of a scenario's fabric, in this network namespace.
// `weft lab ask`: sends a request to a running switch.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

// Adds both to the noun `lab`. `status` becomes the exit status of the one that is called.
void add_lab_switch(CLI::App& lab, int& status);

}  // namespace weft::cli
