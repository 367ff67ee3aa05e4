#include "device/qp_profiles.h"

#include <fmt/core.h>

namespace weft::device {

Result<QpProfiles> find_profiles(const ProfileIds& ids, const std::vector<fabric::Ev>& automatic) {
  if (ids.ev != 0 || ids.cc != 0) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("EV profile {} or CC profile {} is not online", ids.ev, ids.cc)};
  }
  return QpProfiles{.evs = automatic};
}

}  // namespace weft::device
