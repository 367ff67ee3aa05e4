// Command-line flags for all settings (settings/net_settings.h), for commands that use the real
// network.
#pragma once

#include "cli/app_fwd.h"
#include "settings/net_settings.h"
#include "settings/secret_file.h"

namespace weft::cli {

using settings::load_settings;
using settings::NetSettings;
using settings::planes_of;
using settings::read_secret_file;
using settings::set_log_level_or;
using settings::SettingFlags;
using settings::SharedMemory;

// Adds --config and the flags of all settings to a command. `flags` gets the values that the user
// gives.
void add_setting_flags(CLI::App& command, SettingFlags& flags);

}  // namespace weft::cli
