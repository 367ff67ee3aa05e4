#include "cli/ctl_target.h"

#include <fmt/core.h>

namespace weft::cli {

void add_ctl_flags(CLI::App& command, CtlFlags& flags) {
  command.add_option("--device", flags.device, "the device (default weft0)");
  command.add_flag("--json", flags.json, "one JSON object on stdout");
  add_setting_flags(command, flags.settings);
}

Result<CtlTarget> open_ctl_target(const CtlFlags& flags) {
  CtlTarget target;
  WEFT_TRY(target.settings, load_settings(flags.settings, flags.device));
  WEFT_TRY(const auto planes, planes_of(target.settings));
  std::uint32_t ports = 0;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    target.planes.push_back(planes[i].address);
    ports |= 2u << i;
  }
  target.scope = device::scope_of(target.planes);
  WEFT_TRY(target.directory, device::state_directory(target.scope));
  WEFT_TRY(target.state, device::ControllerState::open({.directory = target.directory,
                                                        .device = flags.device,
                                                        .scope = target.scope,
                                                        .shape = {.port_mask = ports}}));
  return target;
}

Error from_ctl(const device::CtlError& error) { return {ErrorKind::kSystem, error.message}; }

Result<void> finished(const device::CtlResult<void>& result) {
  if (result) return {};
  return from_ctl(result.error());
}

Result<std::shared_ptr<const device::CtlModel>> model_of(const CtlTarget& target) {
  auto model = target.state->observed();
  if (!model) return from_ctl(model.error());
  return *model;
}

Result<std::uint32_t> disabled_ports(const CtlFlags& flags) {
  WEFT_TRY(const CtlTarget target, open_ctl_target(flags));
  WEFT_TRY(const auto model, model_of(target));
  return model->ports_disabled & target.state->shape().port_mask;
}

void run_ctl(int& status, const std::function<Result<void>()>& body) {
  const auto done = body();
  if (done) return;
  fmt::print(stderr, "weft: {}\n", done.error().message);
  status = done.error().kind == ErrorKind::kInvalid ? 2 : 1;
}

}  // namespace weft::cli
