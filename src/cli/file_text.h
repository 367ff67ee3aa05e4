// The text of a file that a person named, or nothing: it is not there, is a folder, may not be read.
#pragma once

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace weft::cli {

inline std::optional<std::string> file_text(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  std::stringstream text;
  if (!in || !(text << in.rdbuf())) return std::nullopt;
  return std::move(text).str();
}

}  // namespace weft::cli
