#include "run/load_scenario.h"

#include <fmt/core.h>

#include "os/file_text.h"
#include "scenario/parse.h"

namespace weft::run {

Result<scenario::Scenario> load_scenario(const std::string& file) {
  constexpr const char* kExpected = "a scenario file (TOML, see docs/scenarios.md)";
  if (file.empty()) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("the name of a file is empty; expected {}", kExpected)};
  }
  WEFT_TRY(const std::string text, os::file_text(file, kExpected));
  return scenario::parse(text, file);
}

}  // namespace weft::run
