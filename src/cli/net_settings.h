// The flags of the settings (settings/net_settings.h), for a command that uses the real network.
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

// Adds the flags of all settings and --config to a command; `flags` gets what was given.
void add_setting_flags(CLI::App& command, SettingFlags& flags);

}  // namespace weft::cli
