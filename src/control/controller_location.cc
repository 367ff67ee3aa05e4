// Finds the directory of a device's state, and whether the device belongs to a user or to the
// system.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "control/controller_state.h"
#include "os/log.h"

namespace weft::control {

DeviceScope scope_of(std::span<const Ipv6> planes) {
  const bool loopback = std::all_of(planes.begin(), planes.end(), [](const Ipv6& ip) {
    const bool four = ip.high == 0 && ip.low >> 24 == 0xffff'7f;  // ::ffff:127.0.0.0/104
    return four || (ip.high == 0 && ip.low == 1);
  });
  return loopback ? DeviceScope::kUser : DeviceScope::kSystem;
}

Result<std::string> state_directory(DeviceScope scope) {
  const auto variable = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (std::string named = variable("WEFT_STATE_DIR"); !named.empty()) return named;
  if (scope == DeviceScope::kSystem || geteuid() == 0) return std::string("/run/weft");
  if (const std::string xdg = variable("XDG_STATE_HOME"); !xdg.empty()) return xdg + "/weft";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.local/state/weft";
  return Error{ErrorKind::kSystem,
               "no directory for the controller's state; set WEFT_STATE_DIR or HOME"};
}

std::unique_ptr<ControllerState> open_controller(const std::string& device,
                                                 std::span<const Ipv6> planes) {
  ControllerState::Options options{.device = device, .scope = scope_of(planes)};
  options.shape.port_mask = ((1u << planes.size()) - 1) << 1;
  auto directory = state_directory(options.scope);
  if (directory) options.directory = *directory;
  auto opened = directory ? ControllerState::open(options) : directory.error();
  if (!opened) {
    os::log(os::LogLevel::kWarn, "{}: no controller: {}", device, opened.error().message);
    options.directory.clear();
    opened = ControllerState::open(options);
  }
  WEFT_ASSERT(opened);  // without a directory, open() can fail only for an invalid name
  return std::move(opened).value();
}

}  // namespace weft::control
