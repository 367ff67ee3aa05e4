#include "cli/load_scenario.h"

#include <fmt/core.h>

#include <fstream>
#include <sstream>

#include "scenario/parse.h"

namespace weft::cli {

Result<scenario::Scenario> load_scenario(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  if (!in || !(text << in.rdbuf())) {
    return Error{
        ErrorKind::kNotFound,
        fmt::format("{}: cannot be read; expected a scenario file (TOML, see docs/scenarios.md)",
                    file)};
  }
  return scenario::parse(text.str(), file);
}

}  // namespace weft::cli
