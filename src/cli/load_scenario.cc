#include "cli/load_scenario.h"

#include "scenario/parse.h"
#include "settings/file_text.h"

namespace weft::cli {

Result<scenario::Scenario> load_scenario(const std::string& file) {
  WEFT_TRY(const std::string text,
           settings::file_text(file, "a scenario file (TOML, see docs/scenarios.md)"));
  return scenario::parse(text, file);
}

}  // namespace weft::cli
