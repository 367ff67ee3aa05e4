#include <fmt/core.h>

#include <cerrno>
#include <cmath>

#include "control/ctl_profiles.h"

namespace weft::control {
namespace {

CtlResult<void> check_real(const char* name, float value, float most) {
  if (std::isfinite(value) && value >= 0 && value <= most) return {};
  return ctl_error(EINVAL, fmt::format("{} is {}; expected 0 to {}", name, value, most));
}

CtlResult<void> check_nscc(const NsccSettings& nscc) {
  constexpr float kBytesMax = 1e9f;
  WEFT_CHECK(check_real("eta", nscc.eta, kBytesMax));
  WEFT_CHECK(check_real("fi", nscc.fi, kBytesMax));
  WEFT_CHECK(check_real("fi_scale", nscc.fi_scale, 1e6f));
  WEFT_CHECK(check_real("gamma", nscc.gamma, 1));
  WEFT_CHECK(check_real("max_md_jump", nscc.max_md_jump, 1));
  if (nscc.qa_gate > 31) {
    return ctl_error(EINVAL, fmt::format("qa_gate is {}; expected a shift of 0 to 31",
                                         static_cast<unsigned>(nscc.qa_gate)));
  }
  return {};
}

CtlResult<void> apply(const CcChange& change, CcProfile& profile) {
  const bool online = profile.state == ProfileState::kOnline;
  if (online && (change.algorithm || change.vendor)) {
    return ctl_error(EINVAL, "the profile is ONLINE; only CONFIG and STATE can be modified");
  }
  if (change.algorithm) {
    // The stored configuration belongs to the other algorithm.
    if (change.algorithm != profile.algorithm) profile.nscc.reset();
    profile.algorithm = change.algorithm;
  }
  if (change.nscc || change.config_empty) {
    if (!profile.algorithm) return ctl_error(EINVAL, "CONFIG without ALGORITHM");
    const bool takes = *profile.algorithm == CcAlgorithm::kNscc;
    if (takes == change.config_empty) {
      return ctl_error(EINVAL, takes ? "the configuration of NSCC is missing"
                                     : "congestion control is disabled: it takes no configuration");
    }
    if (takes) {
      WEFT_CHECK(check_nscc(*change.nscc));
      profile.nscc = change.nscc;
    }
  }
  if (change.vendor) profile.vendor = *change.vendor;
  return {};
}

}  // namespace

CtlResult<void> check_cc_profile(const CtlModel& model, std::uint32_t id) {
  const CcProfile& profile = model.ccs[id];
  if (profile.nscc) WEFT_CHECK(check_nscc(*profile.nscc));
  const bool nscc = profile.algorithm && *profile.algorithm == CcAlgorithm::kNscc;
  const bool algorithm = profile.algorithm || profile.state == ProfileState::kInit;
  const bool config = profile.nscc || !nscc || profile.state != ProfileState::kOnline;
  if (algorithm && config) return {};
  return ctl_error(EINVAL, fmt::format("CC profile {} lacks algorithm or configuration", id));
}

CtlResult<void> modify_cc_profile(CtlModel& model, std::uint64_t id, const CcChange& change,
                                  const CcContext& context) {
  if (id >= kCcProfilesMax) {
    return ctl_error(EINVAL,
                     fmt::format("no CC profile {}; expected 0 to {}", id, kCcProfilesMax - 1));
  }
  CcProfile profile = model.ccs[id];
  WEFT_CHECK(check_current(profile.state, change.cur_state));
  WEFT_CHECK(apply(change, profile));
  if (change.state) {
    WEFT_CHECK(check_transition(profile.state, *change.state));
    if (profile.state == ProfileState::kOnline && context.in_use) {
      return ctl_error(EBUSY, "QPs use this profile");
    }
    if (*change.state == ProfileState::kInit) {
      profile = {};
    } else if (!profile.algorithm) {
      return ctl_error(EINVAL, "ALGORITHM is needed before OFFLINE");
    } else if (*change.state == ProfileState::kOnline && *profile.algorithm == CcAlgorithm::kNscc &&
               !profile.nscc) {
      return ctl_error(EINVAL, "CONFIG is needed before ONLINE");
    }
    profile.state = *change.state;
  }
  model.ccs[id] = profile;
  return {};
}

CtlResult<bool> is_port_enabled(const CtlModel& model, const CtlDevice& device,
                                std::uint32_t port) {
  if (port == 0 || port > world::kPortsMax || (device.port_mask >> port & 1) == 0) {
    return ctl_error(EINVAL, fmt::format("the device has no port {}", port));
  }
  return (model.ports_disabled >> port & 1) == 0;
}

CtlResult<void> modify_port(CtlModel& model, const CtlDevice& device, const PortChange& change) {
  WEFT_CHECK(is_port_enabled(model, device, change.port));
  const std::uint32_t bit = 1u << change.port;
  model.ports_disabled = change.enabled ? model.ports_disabled & ~bit : model.ports_disabled | bit;
  return {};
}

}  // namespace weft::control
