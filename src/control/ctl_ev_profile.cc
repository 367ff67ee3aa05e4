#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/prng.h"
#include "control/ctl_profiles.h"

namespace weft::control {
namespace {

using fabric::EvMode;

std::optional<EvMode> ev_mode(std::uint32_t value) {
  for (const auto mode : {EvMode::kAutomatic, EvMode::kExplicit, EvMode::kGenerated}) {
    if (static_cast<std::uint32_t>(mode) == value) return mode;
  }
  return std::nullopt;
}

CtlError from(const Error& error) { return ctl_error(EINVAL, error.message); }

// Checks that every attribute of `change` may change in the profile's present state.
CtlResult<void> check_allowed(const EvProfileRecord& profile, const EvChange& change) {
  const bool other =
      change.mode || change.format || change.count || change.min_active || change.vendor;
  if (profile.state == ProfileState::kOnline && other) {
    return ctl_error(
        EINVAL, "the profile is ONLINE; only STATE, EVENT_MASK, fields and EVs can be modified");
  }
  if (profile.state == ProfileState::kInit && change.ops && !change.state) {
    return ctl_error(EINVAL, "the profile is INIT and has no EVs yet; move it to OFFLINE");
  }
  return {};
}

CtlResult<void> apply_numbers(const EvChange& change, const CtlModel& model,
                              EvProfileRecord& profile) {
  if (change.mode) {
    profile.mode = ev_mode(*change.mode);
    if (!profile.mode) {
      return ctl_error(EINVAL,
                       fmt::format("mode {}; expected 1 (AUTO), 2 (EXP) or 4 (GEN)", *change.mode));
    }
  }
  if (change.format) {
    if (*change.format >= kFormatProfilesMax) {
      return ctl_error(EINVAL, fmt::format("no EV format profile {}", *change.format));
    }
    profile.format = static_cast<std::uint32_t>(*change.format);
  }
  if (change.count) {
    const std::uint32_t free_count =
        kEvsMax - ev_count(model) + static_cast<std::uint32_t>(profile.evs.size());
    const std::uint32_t most = std::min(kEvsPerProfileMax, free_count);
    if (*change.count == 0) return ctl_error(EINVAL, "COUNT is 0");
    if (*change.count > most) {
      return ctl_error(E2BIG, fmt::format("COUNT is {}; at most {} EVs are free for a profile",
                                          *change.count, most));
    }
    profile.count = change.count;
  }
  if (change.min_active) profile.min_active = change.min_active;
  if (change.event_mask) {
    if ((*change.event_mask & ~kEventStates) != 0) {
      return ctl_error(EINVAL, "EVENT_MASK has other states than GOOD and ASSUMED_BAD");
    }
    profile.event_mask = change.event_mask;
  }
  if (change.fields) {
    if (change.fields->size() > kEvFieldsMax) {
      return ctl_error(E2BIG, fmt::format("{} fields; at most {} are possible",
                                          change.fields->size(), kEvFieldsMax));
    }
    profile.fields = change.fields;
  }
  if (change.vendor) profile.vendor = *change.vendor;
  if (profile.min_active && profile.count && *profile.min_active > *profile.count) {
    return ctl_error(EINVAL, fmt::format("MIN_ACTIVE is {}, more than COUNT, {}",
                                         *profile.min_active, *profile.count));
  }
  return {};
}

CtlResult<std::vector<EvEntry>> generate(const CtlModel& model, const EvProfileRecord& profile,
                                         const CtlDevice& device, std::uint64_t id) {
  fabric::EvProfileSpec spec;
  spec.mode = EvMode::kGenerated;
  const FormatProfile& format = model.formats[*profile.format];
  spec.format = {.mode = *format.mode, .widths = *format.widths};
  spec.fields = *profile.fields;
  spec.count = *profile.count;
  spec.port_mask = static_cast<std::uint8_t>(device.port_mask >> 1);
  Prng prng = Prng(model.seed).fork("ev-profile", id);
  auto made = fabric::EvProfile::make(std::move(spec), prng);
  if (!made) return from(made.error());
  std::vector<EvEntry> entries;
  for (const fabric::ProfileEv& ev : made->evs()) {
    entries.push_back({.ev = {.value = ev.value, .port = static_cast<std::uint8_t>(ev.port + 1)}});
  }
  return entries;
}

// Sets the size of `evs`, or generates the EVs, according to mode, format, count and fields; each
// of these may still be unknown.
CtlResult<void> fill(const CtlModel& model, const EvChange& change, const EvContext& context,
                     std::uint64_t id, EvProfileRecord& profile) {
  const bool shape = change.mode || change.format || change.count || change.fields;
  if (!shape || !profile.mode) return {};
  if (*profile.mode == EvMode::kAutomatic) {
    profile.evs.clear();
    return {};
  }
  if (!profile.count) return {};
  if (*profile.mode == EvMode::kExplicit) {
    if (change.mode) profile.evs.clear();
    profile.evs.resize(*profile.count);
    return {};
  }
  if (!profile.format || !profile.fields) {
    profile.evs.clear();
    return {};
  }
  WEFT_CHECK(expansion_of(model, profile));
  WEFT_TRY(profile.evs, generate(model, profile, context.device, id));
  return {};
}

// Checks that the profile has the attributes that OFFLINE and ONLINE need.
CtlResult<void> check_offline(const CtlModel& model, const EvProfileRecord& profile) {
  if (!profile.mode) return ctl_error(EINVAL, "MODE is needed before OFFLINE");
  if (*profile.mode == EvMode::kAutomatic) return {};
  if (!profile.format) return ctl_error(EINVAL, "FMT_ID is needed before OFFLINE");
  if (!profile.count) return ctl_error(EINVAL, "COUNT is needed before OFFLINE");
  if (*profile.mode == EvMode::kGenerated && !profile.fields) {
    return ctl_error(EINVAL, "MODIFY_FIELDS is needed before OFFLINE of a GEN profile");
  }
  WEFT_CHECK(expansion_of(model, profile));
  return {};
}

// Checks everything that a QP relies on. This is repeated for ONLINE, since the format may have
// changed after OFFLINE.
CtlResult<void> check_online(const CtlModel& model, const EvProfileRecord& profile) {
  if (*profile.mode == EvMode::kAutomatic) return {};
  if (!profile.min_active) return ctl_error(EINVAL, "MIN_ACTIVE is needed before ONLINE");
  if (!profile.event_mask) return ctl_error(EINVAL, "EVENT_MASK is needed before ONLINE");
  if (model.formats[*profile.format].state != ProfileState::kOnline) {
    return ctl_error(EINVAL,
                     fmt::format("its EV format profile {} is not ONLINE", *profile.format));
  }
  WEFT_TRY(const fabric::EvExpansion expansion, expansion_of(model, profile));
  for (std::size_t i = 0; i < profile.evs.size(); ++i) {
    if (!profile.evs[i].ev.is_populated()) {
      return ctl_error(EINVAL, fmt::format("EV {} of {} is not populated", i, profile.evs.size()));
    }
    if (const auto expanded = expansion.expand(profile.evs[i].ev.value); !expanded) {
      return ctl_error(EINVAL, fmt::format("EV {}: {}", i, expanded.error().message));
    }
  }
  return {};
}

CtlResult<void> move(const CtlModel& model, ProfileState to, bool in_use,
                     EvProfileRecord& profile) {
  WEFT_CHECK(check_transition(profile.state, to));
  if (profile.state == ProfileState::kOnline && in_use) {
    return ctl_error(EBUSY, "QPs use this profile");
  }
  if (to == ProfileState::kInit) {
    profile = {};
    return {};
  }
  if (profile.state == ProfileState::kInit) WEFT_CHECK(check_offline(model, profile));
  if (to == ProfileState::kOnline) {
    WEFT_CHECK(check_offline(model, profile));
    WEFT_CHECK(check_online(model, profile));
  }
  profile.state = to;
  return {};
}

}  // namespace

CtlResult<void> check_ev_profile(const CtlModel& model, std::uint32_t id) {
  const EvProfileRecord& profile = model.evs[id];
  const bool holds = profile.mode && *profile.mode != EvMode::kAutomatic && profile.count;
  const bool generated = profile.mode && *profile.mode == EvMode::kGenerated;
  const bool empty = generated && profile.evs.empty() && profile.state == ProfileState::kInit;
  if (profile.evs.size() != (holds ? *profile.count : 0) && !empty) {
    return ctl_error(EINVAL, fmt::format("EV profile {}: COUNT and the EVs differ", id));
  }
  if (profile.state == ProfileState::kInit) return {};
  if (!profile.mode) return ctl_error(EINVAL, fmt::format("EV profile {} has no mode", id));
  if (profile.state == ProfileState::kOffline) {
    // The format may have gone back to INIT: this is allowed here, although the profile cannot go
    // ONLINE then.
    const bool whole = *profile.mode == EvMode::kAutomatic || (profile.format && profile.count);
    if (!whole) return ctl_error(EINVAL, fmt::format("EV profile {} lacks format or count", id));
    return {};
  }
  WEFT_CHECK(check_offline(model, profile));
  WEFT_CHECK(check_online(model, profile));
  return {};
}

CtlResult<fabric::EvExpansion> expansion_of(const CtlModel& model, const EvProfileRecord& profile) {
  if (!profile.format) return ctl_error(EINVAL, "the profile has no EV format profile");
  const FormatProfile& format = model.formats[*profile.format];
  if (format.state == ProfileState::kInit || !format.mode || !format.widths) {
    return ctl_error(EINVAL,
                     fmt::format("EV format profile {} is not configured", *profile.format));
  }
  fabric::EvFormat layout{.mode = *format.mode, .widths = *format.widths};
  auto fields = profile.fields ? *profile.fields : fabric::free_fields(layout);
  if (fields.empty()) fields = fabric::free_fields(layout);
  auto made = fabric::EvExpansion::make(std::move(layout), std::move(fields));
  if (!made) return from(made.error());
  return std::move(made).value();
}

CtlResult<void> modify_ev_profile(CtlModel& model, std::uint64_t id, const EvChange& change,
                                  const EvContext& context, bool& changed) {
  changed = false;
  if (id >= kEvProfilesMax) {
    return ctl_error(EINVAL,
                     fmt::format("no EV profile {}; expected 0 to {}", id, kEvProfilesMax - 1));
  }
  EvProfileRecord profile = model.evs[id];
  WEFT_CHECK(check_current(profile.state, change.cur_state));
  if (change.ops && change.fields) {
    return ctl_error(EINVAL, "EV_OP and EV_FIELDS_OP exclude each other");
  }
  WEFT_CHECK(check_allowed(profile, change));
  WEFT_CHECK(apply_numbers(change, model, profile));
  WEFT_CHECK(fill(model, change, context, id, profile));
  const bool shape = change.mode || change.format || change.count || change.fields;
  if (shape && profile.state != ProfileState::kInit) WEFT_CHECK(check_offline(model, profile));
  if (shape && profile.state == ProfileState::kOnline) WEFT_CHECK(check_online(model, profile));
  if (change.ops) {
    if (const auto done = carry_out_ev_ops(model, *change.ops, context.device, profile); !done) {
      changed = !(profile == model.evs[id]);
      model.evs[id] = std::move(profile);
      return done.error();
    }
  }
  if (change.state) WEFT_CHECK(move(model, *change.state, context.in_use, profile));
  changed = true;
  model.evs[id] = std::move(profile);
  return {};
}

}  // namespace weft::control
