// Removes what killed runs of `weft lab run` left in this kernel. Each command that makes or takes
// down a lab calls it first.
#pragma once

#include <string>
#include <vector>

namespace weft::cli {

// Takes those labs down and reports it. Returns the names of the removed labs. A lab that cannot be
// removed is not an error of the calling command.
std::vector<std::string> sweep_labs();

}  // namespace weft::cli
