// QpProfiles: what the two profiles that a QP names mean for it, as they were when it was
// configured.
//
// The one place where a controller's profiles enter a QP. Profile 0 is always there: the device's
// own EVs (AUTO) and NSCC's defaults.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "fabric/ev.h"
#include "transport/config.h"

namespace weft::device {

struct QpProfiles {
  std::vector<fabric::Ev> evs{};  // never empty
  std::uint32_t ev_active = 0;    // of them in rotation; 0: all
  std::optional<std::uint32_t> min_active_percent{};
  // Replaces what software ends are told of congestion, where a controller says so.
  std::optional<transport::NsccConfig> nscc{};
  // Whatever must live as long as the QP uses them.
  std::shared_ptr<const void> uses{};
};

struct ProfileIds {
  std::uint64_t ev = 0, cc = 0;
};

// Errors: kInvalid when there is no such profile, or it is not online.
Result<QpProfiles> find_profiles(const ProfileIds& ids, const std::vector<fabric::Ev>& automatic);

}  // namespace weft::device
