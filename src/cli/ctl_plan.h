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
#include "device/controller_state.h"

namespace weft::cli {

struct CtlPlan {
  struct Format {
    std::uint64_t id = 0;
    device::FormatChange change{};  // without states
    device::ProfileState state = device::ProfileState::kOnline;
  };
  struct Ev {
    std::uint64_t id = 0;
    device::EvChange change{};
    std::vector<device::CtlEv> evs{}, denied{};
    device::ProfileState state = device::ProfileState::kOnline;
  };
  struct Cc {
    std::uint64_t id = 0;
    device::CcChange change{};
    device::ProfileState state = device::ProfileState::kOnline;
  };
  std::vector<Format> formats{};
  std::vector<Ev> evs{};
  std::vector<Cc> ccs{};
  std::vector<device::PortChange> ports{};
};

// Errors: kInvalid with FILE:LINE:COLUMN.
Result<CtlPlan> ctl_plan_from(std::string_view toml, std::string_view file_name);

// Carries it out, formats first: all of it, or nothing where anything is refused. REQUIRES numbers
// of profiles that there are.
device::CtlResult<void> carry_out(const CtlPlan& plan, device::ControllerState& state);

}  // namespace weft::cli
