#include "cli/load_scenario.h"

#include <fmt/core.h>

#include "cli/file_text.h"
#include "scenario/parse.h"

namespace weft::cli {

Result<scenario::Scenario> load_scenario(const std::string& file) {
  const auto text = file_text(file);
  if (!text) {
    return Error{
        ErrorKind::kNotFound,
        fmt::format("{}: cannot be read; expected a scenario file (TOML, see docs/scenarios.md)",
                    file)};
  }
  return scenario::parse(*text, file);
}

}  // namespace weft::cli
