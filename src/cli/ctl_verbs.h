// The verbs of `weft ctl` that show or change profiles and the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/ctl_target.h"
#include "control/ctl_profiles.h"

namespace weft::cli {

// The arguments of a verb that concerns one profile.
struct ProfileArguments {
  CtlFlags flags;
  std::optional<std::uint64_t> id;
  std::string state, cur_state, mode, widths, events, algorithm, file, ev_state = "good";
  std::optional<std::uint32_t> format, count, min_active;
  std::vector<std::string> fields, config, evs, replacements;
  bool all_copies = false;
};

// These verbs change something. Errors: kInvalid (misuse), kSystem (the controller's state
// refuses).
Result<void> set_format(const ProfileArguments& a);
Result<void> set_ev(const ProfileArguments& a);
Result<void> change_evs(const ProfileArguments& a, control::EvOp op);
Result<void> set_cc(const ProfileArguments& a);
// Applies a TOML file. `only`: apply only this noun of the file; empty: all nouns.
Result<void> apply_file(const CtlFlags& flags, const std::string& name, const std::string& only);

// These verbs print to stdout.
Result<void> show_device(const CtlFlags& flags);
Result<void> show_formats(const ProfileArguments& a);
Result<void> show_evs(const ProfileArguments& a);
Result<void> show_ccs(const ProfileArguments& a);

}  // namespace weft::cli
