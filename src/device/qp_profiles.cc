#include "device/qp_profiles.h"

namespace weft::device {

Result<QpProfiles> find_profiles(control::CtlAgent& agent, const control::CtlAgent::Ids& ids) {
  auto found = agent.find(ids);
  if (!found) {
    const bool invalid = found.error().code == EINVAL;
    return Error{invalid ? ErrorKind::kInvalid : ErrorKind::kSystem, found.error().message};
  }
  return QpProfiles{.evs = agent.evs(), .min_active = (*found)->min_active, .uses = *found};
}

}  // namespace weft::device
