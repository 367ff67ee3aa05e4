// The device that a `weft ctl` command acts on: its name, its ports, its state. The network
// settings select it.
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

// An error of the controller becomes kSystem. Misuse is only a request that fails before the
// controller is asked.
Error from_ctl(const control::CtlError& error);
// Ends a verb that changes something: with --json it prints the generation of the state that the
// change made.
Result<void> finished(const CtlFlags& flags, const CtlTarget& target,
                      const control::CtlResult<void>& result);
// The whole model: what controllers set, and what QPs found out. Errors: kSystem.
Result<std::shared_ptr<const control::CtlModel>> model_of(const CtlTarget& target);
// Settings of controllers that stop programs, namely programs that select no profile.
struct ControllerWord {
  std::uint32_t ports_disabled = 0;  // bit N: port N
  struct Hindrance {
    std::string name{}, what{};  // "ev-profile 0"; "it is OFFLINE"
    std::string mend{};          // the command that repairs it
  };
  std::vector<Hindrance> hindrances{};
};
// Does not create a state where none exists. Errors: kInvalid, kSystem.
Result<ControllerWord> controller_word(const CtlFlags& flags);
// The flags that select the device, for a command that shall act on the same device: " --planes
// 10.0.1.7", or nothing.
std::string device_flags(const SettingFlags& flags);
// Runs a verb, prints its error, sets the exit status.
void run_ctl(int& status, const std::function<Result<void>()>& body);

}  // namespace weft::cli
