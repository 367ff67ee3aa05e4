#include "cli/ctl_target.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "os/say.h"
#include "settings/setting_table.h"

namespace weft::cli {
namespace {

// Fills all members except `state`, which is not opened.
Result<CtlTarget> find_ctl_target(const CtlFlags& flags) {
  CtlTarget target;
  WEFT_TRY(target.settings, load_settings(flags.settings, flags.device));
  WEFT_TRY(const auto planes, planes_of(target.settings));
  for (const os::PlaneChoice& plane : planes) target.planes.push_back(plane.address);
  target.scope = control::scope_of(target.planes);
  WEFT_TRY(target.directory, control::state_directory(target.scope));
  return target;
}

Result<void> open_state(CtlTarget& target, const std::string& device) {
  std::uint32_t ports = 0;
  for (std::size_t i = 0; i < target.planes.size(); ++i) ports |= 2u << i;
  WEFT_TRY(target.state, control::ControllerState::open({.directory = target.directory,
                                                         .device = device,
                                                         .scope = target.scope,
                                                         .shape = {.port_mask = ports}}));
  return {};
}

}  // namespace

Result<CtlTarget> open_ctl_target(const CtlFlags& flags) {
  WEFT_TRY(CtlTarget target, find_ctl_target(flags));
  WEFT_CHECK(open_state(target, flags.device));
  return target;
}

Error from_ctl(const control::CtlError& error) { return {ErrorKind::kSystem, error.message}; }

Result<void> report_change(const CtlFlags& flags, const CtlTarget& target,
                           const control::CtlResult<void>& result) {
  if (!result) return from_ctl(result.error());
  if (!flags.json) return {};
  fmt::print("{}\n", nlohmann::json{{"generation", target.state->generation_made()}}.dump());
  return {};
}

Result<std::shared_ptr<const control::CtlModel>> model_of(const CtlTarget& target) {
  auto model = target.state->snapshot_with_bad_evs();
  if (!model) return from_ctl(model.error());
  return *model;
}

Result<ControllerObstacles> controller_obstacles(const CtlFlags& flags) {
  WEFT_TRY(CtlTarget target, find_ctl_target(flags));
  struct stat info {};
  if (stat(target.directory.c_str(), &info) != 0 && errno == ENOENT) return ControllerObstacles();
  WEFT_CHECK(open_state(target, flags.device));
  WEFT_TRY(const auto model, model_of(target));
  ControllerObstacles out{.ports_disabled =
                              model->ports_disabled & target.state->shape().port_mask};
  const std::string which = device_flags(flags.settings);
  const auto hinder = [&](const char* noun, const char* what, const char* change) {
    out.obstacles.push_back({.name = fmt::format("{}-profile 0", noun),
                             .what = what,
                             .mend = fmt::format("weft ctl {} set 0 {}{}", noun, change, which)});
  };
  using control::ProfileState;
  const control::EvProfileRecord& evs = model->evs[0];
  if (evs.state == ProfileState::kOffline) hinder("ev", "it is OFFLINE", "--state online");
  const bool denied =
      !evs.evs.empty() &&
      std::all_of(evs.evs.begin(), evs.evs.end(), [](const control::EvEntry& entry) {
        return entry.state == control::EvState::kDenied;
      });
  if (evs.state == ProfileState::kOnline && denied)
    hinder("ev", "all its EVs are denied", "--state offline  # and then --state init");
  if (model->ccs[0].state == ProfileState::kOffline)
    hinder("cc", "it is OFFLINE", "--state online");
  return out;
}

std::string device_flags(const SettingFlags& flags) {
  std::string out;
  if (!flags.config.empty()) out += " --config " + flags.config;
  for (const char* const key : {"planes", "interfaces"}) {
    const auto given = flags.words.find(key);
    if (given == flags.words.end()) continue;
    out += fmt::format(" {} {}", settings::find_setting(key)->flag, given->second);
  }
  return out;
}

void run_ctl(int& status, const std::function<Result<void>()>& body) {
  const auto done = body();
  if (done) return;
  status = os::fail(done.error());
}

}  // namespace weft::cli
