// QpProfiles: what the two profiles that a QP names mean for it, as they were when it was
// configured.
//
// The one place where a controller's profiles enter a QP. Profile 0 is always there: until a
// controller configures it, the device's own EVs (AUTO) and NSCC's defaults.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "control/ctl_agent.h"
#include "fabric/ev.h"
#include "transport/config.h"

namespace weft::device {

struct QpProfiles {
  std::vector<fabric::Ev> evs{};  // never empty
  std::uint32_t ev_active = 0;    // of them in rotation; 0: all
  std::uint32_t min_active = 0;   // so many stay in use; 0: the device's own rule
  // What must live as long as the QP uses them; null before the QP is configured.
  std::shared_ptr<const control::CtlAgent::Profiles> uses{};
};

// Errors: kInvalid when there is no such profile, or it is not online.
Result<QpProfiles> find_profiles(control::CtlAgent& agent, const control::CtlAgent::Ids& ids);

}  // namespace weft::device
