// QpProfiles: a QP's EVs and congestion control, as its EV profile and CC profile set them. The
// profiles are read when the QP is configured.
//
// Only here do a controller's profiles affect a QP. Profile 0 always exists: until a controller
// configures it, it means the device's own EVs (AUTO) and NSCC's defaults.
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
  std::uint32_t ev_active = 0;    // how many of `evs` are in rotation; 0: all
  std::uint32_t min_active = 0;   // ev_min_active; 0: the device's own rule
  // While the QP holds this, its profiles stay ONLINE. Null before the QP is configured.
  std::shared_ptr<const control::CtlAgent::Profiles> uses{};
};

// Errors: kInvalid if there is no such profile, or it is not ONLINE.
Result<QpProfiles> find_profiles(control::CtlAgent& agent, const control::CtlAgent::Ids& ids);

}  // namespace weft::device
