// LabState: what later commands must know about a lab: what was made, and which faults there are.
// It is a value, and text for its file (lab_folder.h).
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
  bool complete = false;                // up() was finished
  LabFaults faults{};
  friend bool operator==(const LabState&, const LabState&) = default;
};

// The text has lines of `key value...`. lab_state_from(to_text(s)) equals s. Errors name the line.
std::string to_text(const LabState& state);
Result<LabState> lab_state_from(const std::string& text);

}  // namespace weft::lab
