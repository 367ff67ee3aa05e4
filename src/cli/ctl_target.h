// The device that a `weft ctl` command is about, opened by the settings of the network: its name,
// its ports, its state.
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

// A failure of the controller as one of the program: misuse is what could not even be asked.
Error from_ctl(const control::CtlError& error);
// The end of a verb that changes something: with --json, which generation of the state it made.
Result<void> finished(const CtlFlags& flags, const CtlTarget& target,
                      const control::CtlResult<void>& result);
// All that is known: what controllers said, and what QPs found out. Errors: kSystem.
Result<std::shared_ptr<const control::CtlModel>> model_of(const CtlTarget& target);
// What controllers said that keeps programs from working which name no profile.
struct ControllerWord {
  std::uint32_t ports_disabled = 0;  // bit N: port N
  struct Hindrance {
    std::string name{}, what{};  // "ev-profile 0"; "it is OFFLINE"
    std::string mend{};          // the command
  };
  std::vector<Hindrance> hindrances{};
};
// Where there is no state none is made: nobody said anything. Errors: kInvalid, kSystem.
Result<ControllerWord> controller_word(const CtlFlags& flags);
// Those of the flags that say which device is meant, for a command that is to mean the same:
// " --planes 10.0.1.7", or nothing.
std::string device_flags(const SettingFlags& flags);
// Runs a verb, prints what went wrong, sets the exit status.
void run_ctl(int& status, const std::function<Result<void>()>& body);

}  // namespace weft::cli
