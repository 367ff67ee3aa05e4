// What `weft lab status` says of one lab, for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "lab/lab.h"

namespace weft::cli {

// "1000 Mbps", or that links are not held to their rate.
std::string rate_text(const lab::LabPlan& plan);

struct LabStatus {
  nlohmann::ordered_json json;
  std::string table;
  std::optional<Error> broken;  // nothing passes
};
Result<LabStatus> lab_status(const lab::Lab& lab);

}  // namespace weft::cli
