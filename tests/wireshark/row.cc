#include "row.h"

namespace weft::mrc_test {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t to = text.find(separator); to != std::string::npos;
       to = text.find(separator, from)) {
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  parts.push_back(text.substr(from));
  return parts;
}

}  // namespace weft::mrc_test
