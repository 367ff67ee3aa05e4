// The report of `weft lab status` about one lab, as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "lab/lab.h"

namespace weft::cli {

// "1000 Mbps", or a text for links without a rate limit.
std::string rate_text(const lab::LabPlan& plan);

struct LabStatus {
  nlohmann::ordered_json json;
  std::string table;
  std::optional<Error> broken;  // set if part of the lab is gone, so that no packets pass
};
Result<LabStatus> lab_status(const lab::Lab& lab);

}  // namespace weft::cli
