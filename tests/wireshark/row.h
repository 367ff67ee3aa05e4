// Row: a packet as names and values, for comparing two programs.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace weft::mrc_test {

// Keys are the names of tools/wireshark/mrc.lua; numbers are decimal. A field that the packet does
// not have is missing, or "".
using Row = std::map<std::string, std::string>;

// The parts of a text between separators; "a,,b" has three.
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace weft::mrc_test
