// What killed runs of `weft lab run` have left in this kernel: the next command that makes or takes
// down a lab removes it.
#pragma once

#include <string>
#include <vector>

namespace weft::cli {

// Takes it down and says so. Gives the names of what is gone now; what stays is no error of the
// command at hand.
std::vector<std::string> sweep_labs();

}  // namespace weft::cli
