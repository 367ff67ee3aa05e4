// Removes labs that killed runs of `weft lab run` left on this machine. Each command that makes or
// removes a lab calls it first.
#pragma once

#include <string>
#include <vector>

namespace weft::cli {

// Removes these labs, reports that to the user, and returns their names. If a lab cannot be
// removed, the calling command still continues.
std::vector<std::string> sweep_labs();

}  // namespace weft::cli
