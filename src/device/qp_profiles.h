// QpProfiles: what the EV profile and the CC profile of a QP mean for it, read when the QP was
// configured.
//
// This is the only place where a controller's profiles enter a QP. Profile 0 always exists: until a
// controller configures it, it means the device's own EVs (AUTO) and NSCC's defaults.
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
  std::uint32_t ev_active = 0;    // how many of them are in rotation; 0: all
  std::uint32_t min_active = 0;   // ev_min_active; 0: the device's own rule
  // Keeps the profiles in use as long as the QP uses them; null before the QP is configured.
  std::shared_ptr<const control::CtlAgent::Profiles> uses{};
};

// Errors: kInvalid if there is no such profile, or it is not ONLINE.
Result<QpProfiles> find_profiles(control::CtlAgent& agent, const control::CtlAgent::Ids& ids);

}  // namespace weft::device
