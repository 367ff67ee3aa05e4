// LabState: what is remembered of a lab between commands, as a value and as text. A file of it
// (lab_folder.h) tells any later process what was made and what is broken.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "lab/lab_faults.h"
#include "lab/lab_keeper.h"
#include "lab/lab_plan.h"

namespace weft::lab {

struct LabState {
  LabSpec spec{};
  std::optional<LabKeeper> keeper{};
  std::optional<LabKeeper> software{};  // the process of the software switch
  bool complete = false;                // `up` came to its end
  LabFaults faults{};
  friend bool operator==(const LabState&, const LabState&) = default;
};

// Lines `key value...`; from_text(to_text(s)) is s. Errors name the line.
std::string to_text(const LabState& state);
Result<LabState> lab_state_from(const std::string& text);

}  // namespace weft::lab
