// CtlPlan: profiles and ports as a TOML file says they are to be. Pure.
//
//   [[ev_format]]  id, mode, widths, state
//   [[ev]]         id, mode, format, count or evs, min_active, events, fields, denied, state
//   [[cc]]         id, algorithm, the parameters of NSCC, state
//   [[port]]       port, enabled
//
// A profile that a file names is begun anew: through INIT, with what the file says, up to `state`
// (online where nothing is said).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/controller_state.h"

namespace weft::cli {

struct CtlPlan {
  struct Format {
    std::uint64_t id = 0;
    control::FormatChange change{};  // without states
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

// Errors: kInvalid with FILE:LINE:COLUMN.
Result<CtlPlan> ctl_plan_from(std::string_view toml, std::string_view file_name);

// Carries it out, formats first: all of it, or nothing where anything is refused. REQUIRES numbers
// of profiles that there are.
control::CtlResult<void> carry_out(const CtlPlan& plan, control::ControllerState& state);

}  // namespace weft::cli
