// `weft lab switch`: runs the software switch for a scenario's fabric, in the present network
// namespace. `weft lab ask`: sends a request to a running software switch.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

// Adds `switch` and `ask` to the noun `lab`. If one of them is called, `status` becomes the exit
// status.
void add_lab_switch(CLI::App& lab, int& status);

}  // namespace weft::cli
