// ControllerState for QPs: using profiles, and reading their values.
#include <fmt/core.h>

#include <cerrno>

#include "control/controller_state.h"

namespace weft::control {
namespace {

CtlError not_online(const char* kind, std::uint64_t id, ProfileState state) {
  return ctl_error(EINVAL, fmt::format("{} profile {} is {}; a QP needs one that is ONLINE", kind,
                                       id, name_of(state)));
}

fabric::Ev path_of(fabric::EvFormatMode format, const fabric::EvBytes& expanded, std::size_t index,
                   std::uint8_t port) {
  const auto from_zero = static_cast<std::uint8_t>(port - 1);
  switch (format) {
    case fabric::EvFormatMode::kStev:
      return {.value = fabric::ev_first32(expanded), .port = from_zero};
    case fabric::EvFormatMode::kUdp:
      return {.value = fabric::ev_first32(expanded) >> 16, .port = from_zero};
    case fabric::EvFormatMode::kSrv6:
      break;
  }
  return {.value = static_cast<std::uint32_t>(index), .port = from_zero};
}

CtlResult<ControllerState::EvView> view_of(const CtlModel& model, std::uint64_t id) {
  if (id >= kEvProfilesMax) {
    return ctl_error(EINVAL,
                     fmt::format("no EV profile {}; expected 0 to {}", id, kEvProfilesMax - 1));
  }
  const EvProfileRecord& profile = model.evs[id];
  ControllerState::EvView view;
  view.id = static_cast<std::uint32_t>(id);
  view.generation = model.generation;
  // Profile 0 is not configured: it means the device's own defaults.
  if (id == 0 && profile.state == ProfileState::kInit) return view;
  if (profile.state != ProfileState::kOnline) return not_online("EV", id, profile.state);
  view.mode = *profile.mode;
  view.event_mask = profile.event_mask.value_or(0);
  view.min_active = profile.min_active.value_or(0);
  if (view.mode == fabric::EvMode::kAutomatic) return view;
  WEFT_TRY(const fabric::EvExpansion expansion, expansion_of(model, profile));
  view.format = expansion.format().mode;
  view.entries.reserve(profile.evs.size());
  for (const EvEntry& entry : profile.evs) {
    auto expanded = expansion.expand(entry.ev.value);
    if (!expanded) return ctl_error(EIO, expanded.error().message);
    view.entries.push_back(
        {.ev = entry.ev,
         .path = path_of(view.format, *expanded, view.entries.size(), entry.ev.port),
         .expanded = *expanded,
         .state = entry.state});
  }
  return view;
}

CtlResult<ControllerState::CcView> cc_view_of(const CtlModel& model, std::uint64_t id) {
  if (id >= kCcProfilesMax) {
    return ctl_error(EINVAL,
                     fmt::format("no CC profile {}; expected 0 to {}", id, kCcProfilesMax - 1));
  }
  const CcProfile& profile = model.ccs[id];
  ControllerState::CcView view;
  view.id = static_cast<std::uint32_t>(id);
  view.generation = model.generation;
  if (id == 0 && profile.state == ProfileState::kInit) return view;
  if (profile.state != ProfileState::kOnline) return not_online("CC", id, profile.state);
  view.algorithm = *profile.algorithm;
  view.nscc = profile.nscc.value_or(NsccSettings());
  return view;
}

}  // namespace

ControllerState::Use& ControllerState::Use::operator=(Use&& other) noexcept {
  if (this == &other) return *this;
  release();
  state_ = std::exchange(other.state_, nullptr);
  kind_ = other.kind_;
  id_ = other.id_;
  return *this;
}

void ControllerState::Use::release() {
  if (ControllerState* const state = std::exchange(state_, nullptr))
    state->live_.unlock(kind_, id_);
}

void ControllerState::mark_bad(std::uint32_t id, std::uint32_t entry, bool bad) {
  if (is_attached()) live_.mark_bad(id, entry, bad);
}

CtlResult<ControllerState::Snapshot> ControllerState::snapshot_with_bad_evs() {
  WEFT_TRY(const Snapshot told, snapshot());
  if (!is_attached()) return told;
  std::shared_ptr<CtlModel> seen;
  for (std::uint32_t id = 0; id < kEvProfilesMax; ++id) {
    const EvProfileRecord& profile = told->evs[id];
    if (profile.state != ProfileState::kOnline || profile.evs.empty()) continue;
    const auto bad = live_.found_bad(id, static_cast<std::uint32_t>(profile.evs.size()));
    for (std::size_t i = 0; i < bad.size(); ++i) {
      if (!bad[i] || profile.evs[i].state != EvState::kGood) continue;
      if (seen == nullptr) seen = std::make_shared<CtlModel>(*told);
      seen->evs[id].evs[i].state = EvState::kAssumedBad;
    }
  }
  return seen == nullptr ? told : Snapshot(std::move(seen));
}

CtlResult<ControllerState::EvView> ControllerState::ev_view(std::uint64_t id) {
  WEFT_TRY(const Snapshot now, snapshot());
  return view_of(*now, id);
}

CtlResult<ControllerState::CcView> ControllerState::cc_view(std::uint64_t id) {
  WEFT_TRY(const Snapshot now, snapshot());
  return cc_view_of(*now, id);
}

// Lock first, then read: while the lock is held the profile stays ONLINE, so the values stay valid.
CtlResult<ControllerState::EvUse> ControllerState::use_ev_profile(std::uint64_t id) {
  EvUse out;
  if (is_attached() && id < kEvProfilesMax) {
    WEFT_CHECK(live_.lock(ProfileKind::kEv, static_cast<std::uint32_t>(id)));
    out.use = Use(*this, ProfileKind::kEv, static_cast<std::uint32_t>(id));
  }
  WEFT_TRY(const Snapshot now, snapshot());
  WEFT_TRY(out.view, view_of(*now, id));
  if (now->evs[id].state == ProfileState::kInit) out.use.release();
  return out;
}

CtlResult<ControllerState::CcUse> ControllerState::use_cc_profile(std::uint64_t id) {
  CcUse out;
  if (is_attached() && id < kCcProfilesMax) {
    WEFT_CHECK(live_.lock(ProfileKind::kCc, static_cast<std::uint32_t>(id)));
    out.use = Use(*this, ProfileKind::kCc, static_cast<std::uint32_t>(id));
  }
  WEFT_TRY(const Snapshot now, snapshot());
  WEFT_TRY(out.view, cc_view_of(*now, id));
  if (now->ccs[id].state == ProfileState::kInit) out.use.release();
  return out;
}

}  // namespace weft::control
