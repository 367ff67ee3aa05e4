#include "cli/load_scenario.h"

#include "os/file_text.h"
#include "scenario/parse.h"

namespace weft::cli {

Result<scenario::Scenario> load_scenario(const std::string& file) {
  WEFT_TRY(const std::string text,
           os::file_text(file, "a scenario file (TOML, see docs/scenarios.md)"));
  return scenario::parse(text, file);
}

}  // namespace weft::cli
