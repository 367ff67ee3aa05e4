// The device that a `weft ctl` command changes or shows: name, ports, controller's state. The
// network settings select it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/net_settings.h"
#include "control/controller_state.h"

namespace weft::cli {

struct CtlFlags {
  SettingFlags settings{};
  std::string device = "weft0";
  bool json = false;
};

struct CtlTarget {
  NetSettings settings{};
  std::vector<Ipv6> planes{};
  std::string directory{};
  control::DeviceScope scope = control::DeviceScope::kUser;
  std::unique_ptr<control::ControllerState> state{};
};
// Errors: kInvalid, kSystem.
Result<CtlTarget> open_ctl_target(const CtlFlags& flags);

// Makes a kSystem error of any error of the controller's state. kInvalid (misuse) is only for
// requests that are refused before they reach the state.
Error from_ctl(const control::CtlError& error);
// Finishes a verb that changes something. With --json it prints the generation of the state after
// the change.
Result<void> report_change(const CtlFlags& flags, const CtlTarget& target,
                           const control::CtlResult<void>& result);
// The whole model: the settings of controllers, and which EVs QPs have found bad. Errors: kSystem.
Result<std::shared_ptr<const control::CtlModel>> model_of(const CtlTarget& target);
// Settings of controllers that would stop programs that select no profile (profile 0), and disabled
// ports.
struct ControllerObstacles {
  std::uint32_t ports_disabled = 0;  // bit N: port N is disabled
  struct Obstacle {
    std::string name{}, what{};  // such as "ev-profile 0" and "it is OFFLINE"
    std::string mend{};          // the command that changes it back
  };
  std::vector<Obstacle> obstacles{};
};
// If there is no state yet, none is created. Errors: kInvalid, kSystem.
Result<ControllerObstacles> controller_obstacles(const CtlFlags& flags);
// The flags that select this device, as text for a command that is shown to the user: " --planes
// 10.0.1.7", or empty.
std::string device_flags(const SettingFlags& flags);
// Runs `body`, prints its error, and sets the exit status.
void run_ctl(int& status, const std::function<Result<void>()>& body);

}  // namespace weft::cli
