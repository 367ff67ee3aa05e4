#include <fmt/core.h>

#include <cerrno>
#include <numeric>

#include "control/ctl_profiles.h"

namespace weft::control {
namespace {

std::optional<fabric::EvFormatMode> format_mode(std::uint32_t value) {
  using fabric::EvFormatMode;
  for (const auto mode : {EvFormatMode::kStev, EvFormatMode::kSrv6, EvFormatMode::kUdp}) {
    if (static_cast<std::uint32_t>(mode) == value) return mode;
  }
  return std::nullopt;
}

CtlResult<void> check_widths(const FormatProfile& profile) {
  if (!profile.widths) return {};
  if (profile.widths->empty()) return ctl_error(EINVAL, "a format needs a field");
  if (profile.widths->size() > kEvFieldsMax) {
    return ctl_error(E2BIG, fmt::format("{} fields; at most {} are possible",
                                        profile.widths->size(), kEvFieldsMax));
  }
  std::uint32_t bits = 0;
  for (const std::uint32_t width : *profile.widths) {
    if (width == 0 || width > 32) {
      return ctl_error(EINVAL, fmt::format("a field of {} bits; expected 1 to 32", width));
    }
    bits += width;
  }
  const std::uint32_t most = profile.mode ? fabric::bits_max(*profile.mode) : fabric::kEvBits;
  if (bits > most) {
    return ctl_error(E2BIG, fmt::format("the fields have {} bits; the mode has {}", bits, most));
  }
  return {};
}

// The first ONLINE EV profile that uses format profile `id`.
std::optional<std::size_t> user_online(const CtlModel& model, std::uint64_t id) {
  for (std::size_t i = 0; i < model.evs.size(); ++i) {
    const EvProfileRecord& ev = model.evs[i];
    if (ev.state == ProfileState::kOnline && ev.format && *ev.format == id) return i;
  }
  return std::nullopt;
}

}  // namespace

const char* name_of(ProfileState state) {
  switch (state) {
    case ProfileState::kInit:
      return "INIT";
    case ProfileState::kOffline:
      return "OFFLINE";
    case ProfileState::kOnline:
      return "ONLINE";
  }
  return "?";
}

CtlResult<void> check_transition(ProfileState from, ProfileState to) {
  const bool edge = (from == ProfileState::kInit && to == ProfileState::kOffline) ||
                    (from == ProfileState::kOffline && to != ProfileState::kOffline) ||
                    (from == ProfileState::kOnline && to == ProfileState::kOffline);
  if (edge) return {};
  return ctl_error(EINVAL, fmt::format("no way from {} to {}; expected INIT, OFFLINE, ONLINE one "
                                       "step at a time",
                                       name_of(from), name_of(to)));
}

CtlResult<void> check_current(ProfileState is, std::optional<ProfileState> expected) {
  if (!expected || *expected == is) return {};
  return ctl_error(EINVAL, fmt::format("the profile is {}, not {} as CUR_STATE says", name_of(is),
                                       name_of(*expected)));
}

CtlResult<void> check_format_profile(const CtlModel& model, std::uint32_t id) {
  const FormatProfile& profile = model.formats[id];
  WEFT_CHECK(check_widths(profile));
  const bool mode = profile.mode || profile.state == ProfileState::kInit;
  const bool widths = profile.widths || profile.state != ProfileState::kOnline;
  if (mode && widths) return {};
  return ctl_error(EINVAL, fmt::format("EV format profile {} lacks mode or fields", id));
}

CtlResult<void> check_model(const CtlModel& model) {
  for (std::uint32_t i = 0; i < kFormatProfilesMax; ++i) WEFT_CHECK(check_format_profile(model, i));
  for (std::uint32_t i = 0; i < kEvProfilesMax; ++i) WEFT_CHECK(check_ev_profile(model, i));
  for (std::uint32_t i = 0; i < kCcProfilesMax; ++i) WEFT_CHECK(check_cc_profile(model, i));
  if (ev_count(model) > kEvsMax) return ctl_error(EINVAL, "more EVs than a device holds");
  return {};
}

CtlResult<void> modify_format(CtlModel& model, std::uint64_t id, const FormatChange& change) {
  if (id >= kFormatProfilesMax) {
    return ctl_error(EINVAL, fmt::format("no EV format profile {}; expected 0 to {}", id,
                                         kFormatProfilesMax - 1));
  }
  FormatProfile profile = model.formats[id];
  WEFT_CHECK(check_current(profile.state, change.cur_state));
  const bool attributes = change.mode || change.widths || change.vendor;
  if (attributes && profile.state == ProfileState::kOnline) {
    return ctl_error(EINVAL, "the profile is ONLINE; only STATE can be modified");
  }
  if (change.mode) {
    profile.mode = format_mode(*change.mode);
    if (!profile.mode) {
      return ctl_error(
          EINVAL, fmt::format("mode {}; expected 1 (STEV), 2 (SRV6) or 4 (UDP)", *change.mode));
    }
  }
  if (change.widths) profile.widths = change.widths;
  if (change.vendor) profile.vendor = *change.vendor;
  WEFT_CHECK(check_widths(profile));
  if (change.state) {
    WEFT_CHECK(check_transition(profile.state, *change.state));
    const auto user = user_online(model, id);
    if (profile.state == ProfileState::kOnline && user) {
      return ctl_error(EBUSY,
                       fmt::format("EV profile {} uses this format and is ONLINE; take it OFFLINE "
                                   "first",
                                   *user));
    }
    if (*change.state == ProfileState::kInit) {
      profile = {};
    } else if (!profile.mode) {
      return ctl_error(EINVAL, "MODE is needed before OFFLINE");
    } else if (*change.state == ProfileState::kOnline && !profile.widths) {
      return ctl_error(EINVAL, "MODIFY_FIELDS is needed before ONLINE");
    }
    profile.state = *change.state;
  }
  model.formats[id] = std::move(profile);
  return {};
}

}  // namespace weft::control
