#include <fmt/core.h>

#include <algorithm>
#include <cerrno>

#include "control/ctl_profiles.h"

namespace weft::control {
namespace {

CtlResult<void> check_state(std::uint32_t state) {
  if (state == static_cast<std::uint32_t>(EvState::kGood) ||
      state == static_cast<std::uint32_t>(EvState::kDenied)) {
    return {};
  }
  return ctl_error(EINVAL, fmt::format("state {}; expected GOOD (1) or DENIED (4)", state));
}

CtlError not_found(std::size_t index) {
  return ctl_error(ENOENT, fmt::format("entry {}: no such EV in the profile", index));
}

CtlResult<void> replace(const EvOpEntry& entry, std::size_t index, const CtlDevice& device,
                        const fabric::EvExpansion& expansion, std::vector<EvEntry>& evs) {
  WEFT_CHECK(check_state(entry.state));
  const std::uint32_t port = entry.ev_new.port;
  if (port == 0 || port > world::kPortsMax || (device.port_mask >> port & 1) == 0) {
    return ctl_error(EINVAL, fmt::format("entry {}: the device has no port {}", index, port));
  }
  if (const auto expanded = expansion.expand(entry.ev_new.value); !expanded) {
    return ctl_error(EINVAL, fmt::format("entry {}: {}", index, expanded.error().message));
  }
  bool found = false;
  for (EvEntry& at : evs) {
    if (!(at.ev == entry.ev)) continue;
    at = {.ev = entry.ev_new, .state = static_cast<EvState>(entry.state)};
    found = true;
    if (!entry.all_copies) break;
  }
  if (!found && !entry.ev.is_populated())
    return ctl_error(ENOENT,
                     fmt::format("entry {}: no entry is left that is not populated", index));
  if (!found) return not_found(index);
  return {};
}

CtlResult<void> set_state(const EvOpEntry& entry, std::size_t index, std::vector<EvEntry>& evs) {
  WEFT_CHECK(check_state(entry.state));
  if (!entry.ev.is_populated()) {
    return ctl_error(EINVAL,
                     fmt::format("entry {}: an EV that is not populated has no state", index));
  }
  const auto state = static_cast<EvState>(entry.state);
  EvEntry* one = nullptr;
  for (EvEntry& at : evs) {
    if (!(at.ev == entry.ev)) continue;
    // Among several copies, prefer a copy that is not in `state` yet: repeated calls then change
    // all copies, one after another.
    if (one == nullptr || one->state == state) one = &at;
    if (entry.all_copies) at.state = state;
  }
  if (one == nullptr) return not_found(index);
  one->state = state;
  return {};
}

}  // namespace

CtlResult<void> carry_out_ev_ops(const CtlModel& model, const EvOps& ops, const CtlDevice& device,
                                 EvProfileRecord& profile) {
  if (profile.mode && *profile.mode == fabric::EvMode::kAutomatic) {
    return ctl_error(EINVAL, "the profile is AUTO and holds no EVs");
  }
  WEFT_TRY(const fabric::EvExpansion expansion, expansion_of(model, profile));
  for (std::size_t i = 0; i < ops.entries.size(); ++i) {
    const EvOpEntry& entry = ops.entries[i];
    WEFT_CHECK(ops.op == EvOp::kReplace ? replace(entry, i, device, expansion, profile.evs)
                                        : set_state(entry, i, profile.evs));
  }
  return {};
}

CtlResult<std::vector<EvState>> query_ev_states(const CtlModel& model, std::uint64_t id,
                                                std::span<const CtlEv> evs) {
  if (id >= kEvProfilesMax) {
    return ctl_error(EINVAL,
                     fmt::format("no EV profile {}; expected 0 to {}", id, kEvProfilesMax - 1));
  }
  std::vector<EvState> states;
  for (const CtlEv& ev : evs) {
    const auto& all = model.evs[id].evs;
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const EvEntry& entry) { return entry.ev == ev; });
    if (at == all.end()) return not_found(states.size());
    states.push_back(at->state);
  }
  return states;
}

}  // namespace weft::control
