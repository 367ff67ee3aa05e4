// CtlPlan: the profiles and ports that a TOML file asks for. Pure.
//
//   [[ev_format]]  id, mode, widths, state
//   [[ev]]         id, mode, format, count or evs, min_active, events, fields, denied, state
//   [[cc]]         id, algorithm, the parameters of NSCC, state
//   [[port]]       port, enabled
//
// Each profile that the file names is set up from the beginning: it goes to INIT, gets the values
// of the file, and goes to `state` (online by default).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/controller_state.h"

namespace weft::cli {

// In each profile, change.state stays empty: the member `state` after it is the new state.
struct CtlPlan {
  struct Format {
    std::uint64_t id = 0;
    control::FormatChange change{};
    control::ProfileState state = control::ProfileState::kOnline;
  };
  struct Ev {
    std::uint64_t id = 0;
    control::EvChange change{};
    std::vector<control::CtlEv> evs{}, denied{};
    control::ProfileState state = control::ProfileState::kOnline;
  };
  struct Cc {
    std::uint64_t id = 0;
    control::CcChange change{};
    control::ProfileState state = control::ProfileState::kOnline;
  };
  std::vector<Format> formats{};
  std::vector<Ev> evs{};
  std::vector<Cc> ccs{};
  std::vector<control::PortChange> ports{};
};

// Errors: kInvalid, with FILE:LINE:COLUMN in the message.
Result<CtlPlan> ctl_plan_from(std::string_view toml, std::string_view file_name);

// Applies the plan, formats first. If a change is refused, none is made. REQUIRES valid profile
// numbers.
control::CtlResult<void> carry_out(const CtlPlan& plan, control::ControllerState& state);

}  // namespace weft::cli
