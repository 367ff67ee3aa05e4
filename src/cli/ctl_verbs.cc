#include "cli/ctl_verbs.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <nlohmann/json.hpp>

#include "cli/ctl_plan.h"
#include "cli/ctl_words.h"
#include "os/file_text.h"

namespace weft::cli {
namespace {

using control::ProfileState;
using nlohmann::json;

Error misuse(std::string message) { return {ErrorKind::kInvalid, std::move(message)}; }

template <typename T>
Result<std::optional<T>> optional_of(Result<T> result) {
  if (!result) return result.error();
  return std::optional<T>(std::move(result).value());
}

Result<std::optional<ProfileState>> state_of(const char* flag, const std::string& text) {
  if (text.empty()) return std::optional<ProfileState>();
  return optional_of(named(flag, text, kProfileStates));
}

std::string line_of(const json& object) {
  std::string out;
  for (const auto& [key, value] : object.items()) {
    if (key == "id" || value.is_null() || (value.is_array() && value.empty())) continue;
    if (key == "evs") {
      out += fmt::format("  evs={}", value.size());
    } else if (value.is_array() || value.is_object()) {
      out += fmt::format("  {}={}", key, value.dump());
    } else {
      out +=
          fmt::format("  {}={}", key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return out;
}

// add_more() adds to the JSON of a profile what the profile itself does not contain. A format needs
// nothing.
void add_more(const control::CtlModel&, const control::FormatProfile&, json&) {}
void add_more(const control::CtlModel&, const control::CcProfile&, json&) {}
// Adds the bits of each EV in packets, if format and fields are known.
void add_more(const control::CtlModel& model, const control::EvProfileRecord& profile,
              json& object) {
  const auto expansion = control::expansion_of(model, profile);
  for (std::size_t i = 0; expansion && i < profile.evs.size(); ++i) {
    const auto expanded = expansion->expand(profile.evs[i].ev.value);
    if (!profile.evs[i].ev.is_populated() || !expanded) continue;
    std::string text;
    for (const std::byte byte : *expanded) {
      text += fmt::format("{:02x}", static_cast<unsigned>(byte));
    }
    object["evs"][i]["expanded"] = text;
  }
}

// The requested profile. If the user names none: all profiles that a controller has changed.
template <typename Profile, std::size_t N>
Result<void> show(const CtlFlags& flags, const control::CtlModel& model,
                  const std::array<Profile, N>& all, const std::optional<std::uint64_t>& id) {
  json list = json::array();
  for (std::size_t i = 0; i < N; ++i) {
    if (id ? i != *id : all[i] == Profile()) continue;
    json object = to_json(all[i]);
    object["id"] = i;
    add_more(model, all[i], object);
    list.push_back(object);
  }
  if (flags.json) {
    fmt::print("{}\n", json{{"profiles", list}}.dump());
    return {};
  }
  for (const json& object : list) {
    fmt::print("{:>3}{}\n", object["id"].get<std::size_t>(), line_of(object));
    if (!id || !object.contains("evs")) continue;
    for (const json& ev : object["evs"]) {
      fmt::print("     {}  {}\n", ev["ev"].get<std::string>(), ev["state"].get<std::string>());
    }
  }
  return {};
}

// The word "default" cancels all words before it.
Result<void> set_all(const std::vector<std::string>& words, control::NsccSettings& out) {
  for (const std::string& word : words) {
    if (word == "default") {
      out = {};
    } else {
      WEFT_CHECK(set_nscc(word, out));
    }
  }
  return {};
}

}  // namespace

Result<void> apply_file(const CtlFlags& flags, const std::string& name, const std::string& only) {
  WEFT_TRY(const std::string text, os::file_text(name, "a file as in docs/controller.md"));
  WEFT_TRY(CtlPlan plan, ctl_plan_from(text, name));
  if (!only.empty()) {
    if (only != "ev_format") plan.formats.clear();
    if (only != "ev") plan.evs.clear();
    if (only != "cc") plan.ccs.clear();
    if (only != "port") plan.ports.clear();
  }
  WEFT_TRY(const CtlTarget target, open_ctl_target(flags));
  const auto done = carry_out(plan, *target.state);
  if (!done) {
    return Error{ErrorKind::kSystem,
                 fmt::format("{}: {}; nothing was changed", name, done.error().message)};
  }
  return report_change(flags, target, done);
}

Result<void> show_device(const CtlFlags& flags) {
  WEFT_TRY(const CtlTarget target, open_ctl_target(flags));
  WEFT_TRY(const auto model, model_of(target));
  const auto ports = static_cast<std::uint32_t>(std::popcount(target.state->shape().port_mask));
  const bool may = target.state->check_permission().has_value();
  const json object = {{"device", flags.device},
                       {"ports", ports},
                       {"state_directory", target.directory},
                       {"scope", target.scope == control::DeviceScope::kSystem ? "system" : "user"},
                       {"may_change", may},
                       {"generation", model->generation},
                       {"ev_format_profiles_max", control::kFormatProfilesMax},
                       {"ev_profiles_max", control::kEvProfilesMax},
                       {"evs_max", control::kEvsMax},
                       {"evs_free", control::kEvsMax - control::ev_count(*model)},
                       {"evs_per_profile_max", control::kEvsPerProfileMax},
                       {"cc_profiles_max", control::kCcProfilesMax},
                       {"algorithms", json::array({control::kNsccName})}};
  if (flags.json) {
    fmt::print("{}\n", object.dump());
  } else {
    for (const auto& [key, value] : object.items()) {
      fmt::print("{:<24}{}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return {};
}

Result<void> set_format(const ProfileArguments& a) {
  control::FormatChange change;
  WEFT_TRY(change.state, state_of("--state", a.state));
  WEFT_TRY(change.cur_state, state_of("--cur-state", a.cur_state));
  if (!a.mode.empty()) {
    WEFT_TRY(const auto mode, named("--mode", a.mode, kFormatModes));
    change.mode = static_cast<std::uint32_t>(mode);
  }
  if (!a.widths.empty()) {
    WEFT_TRY(change.widths, optional_of(widths_from(a.widths)));
  }
  WEFT_TRY(const CtlTarget target, open_ctl_target(a.flags));
  return report_change(a.flags, target, target.state->modify_format(*a.id, change));
}

Result<void> set_ev(const ProfileArguments& a) {
  control::EvChange change;
  WEFT_TRY(change.state, state_of("--state", a.state));
  WEFT_TRY(change.cur_state, state_of("--cur-state", a.cur_state));
  if (!a.mode.empty()) {
    WEFT_TRY(const auto mode, named("--mode", a.mode, kEvModes));
    change.mode = static_cast<std::uint32_t>(mode);
  }
  if (a.format) change.format = *a.format;
  change.count = a.count;
  change.min_active = a.min_active;
  if (!a.events.empty()) {
    WEFT_TRY(change.event_mask, optional_of(event_mask_from(a.events)));
  }
  if (!a.fields.empty()) {
    change.fields.emplace();
    for (const std::string& text : a.fields) {
      WEFT_TRY(const fabric::EvField field, field_from(text));
      change.fields->push_back(field);
    }
  }
  WEFT_TRY(const CtlTarget target, open_ctl_target(a.flags));
  return report_change(a.flags, target, target.state->modify_ev(*a.id, change));
}

// For kReplace, without `--ev`, an entry that is not populated is replaced.
Result<void> change_evs(const ProfileArguments& a, control::EvOp op) {
  WEFT_TRY(const control::EvState state, named("--ev-state", a.ev_state, kEvStates));
  const bool replaces = op == control::EvOp::kReplace;
  const std::size_t count = replaces ? a.replacements.size() : a.evs.size();
  if (replaces && !a.evs.empty() && a.evs.size() != count) {
    return misuse("as many --ev as --with, or none for entries that are not populated");
  }
  if (count == 0)
    return misuse(
        fmt::format("{} is missing; expected an EV, as f3b04256@1", replaces ? "--with" : "--ev"));
  control::EvOps ops{.op = op};
  for (std::size_t i = 0; i < count; ++i) {
    control::EvOpEntry entry{.state = static_cast<std::uint32_t>(state),
                             .all_copies = a.all_copies};
    if (!a.evs.empty()) {
      WEFT_TRY(entry.ev, ev_from(a.evs[i]));
    }
    if (replaces) {
      WEFT_TRY(entry.ev_new, ev_from(a.replacements[i]));
    }
    ops.entries.push_back(entry);
  }
  WEFT_TRY(const CtlTarget target, open_ctl_target(a.flags));
  // All entries are changed, or none. (A batch of the API itself keeps the entries before the
  // refused one.)
  const auto done = target.state->change_together(
      [&](control::ControllerState::Changes& to) { return to.modify_ev(*a.id, {.ops = ops}); });
  if (!done && count > 1) {
    return Error{ErrorKind::kSystem, fmt::format("{} (entries count from 0); nothing was changed",
                                                 done.error().message)};
  }
  return report_change(a.flags, target, done);
}

Result<void> set_cc(const ProfileArguments& a) {
  control::CcChange change;
  WEFT_TRY(change.state, state_of("--state", a.state));
  WEFT_TRY(change.cur_state, state_of("--cur-state", a.cur_state));
  if (!a.algorithm.empty()) {
    WEFT_TRY(change.algorithm, optional_of(named("--algorithm", a.algorithm, kAlgorithms)));
  }
  // This first pass only checks the words. The values are set in the second pass, under the lock.
  control::NsccSettings none;
  WEFT_CHECK(set_all(a.config, none));
  WEFT_TRY(const CtlTarget target, open_ctl_target(a.flags));
  const auto done = target.state->change_together([&](control::ControllerState::Changes& state) {
    if (!a.config.empty()) {
      // Parameters that the user does not give keep their values.
      change.nscc = state.model().ccs[*a.id].nscc.value_or(control::NsccSettings());
      (void)set_all(a.config, *change.nscc);
    }
    return state.modify_cc(*a.id, change);
  });
  return report_change(a.flags, target, done);
}

Result<void> show_formats(const ProfileArguments& a) {
  WEFT_TRY(const CtlTarget target, open_ctl_target(a.flags));
  WEFT_TRY(const auto model, model_of(target));
  return show(a.flags, *model, model->formats, a.id);
}

Result<void> show_evs(const ProfileArguments& a) {
  WEFT_TRY(const CtlTarget target, open_ctl_target(a.flags));
  WEFT_TRY(const auto model, model_of(target));
  return show(a.flags, *model, model->evs, a.id);
}

Result<void> show_ccs(const ProfileArguments& a) {
  WEFT_TRY(const CtlTarget target, open_ctl_target(a.flags));
  WEFT_TRY(const auto model, model_of(target));
  return show(a.flags, *model, model->ccs, a.id);
}

}  // namespace weft::cli
