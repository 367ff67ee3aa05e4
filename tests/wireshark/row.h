// Row: a packet as names and values, the form in which two programs' views of it are compared.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace weft::mrc_test {

// By the names of tools/wireshark/mrc.lua; numbers in decimal. What the packet does not have is not
// there, or "".
using Row = std::map<std::string, std::string>;

// The parts of a text between separators; "a,,b" has three.
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace weft::mrc_test
