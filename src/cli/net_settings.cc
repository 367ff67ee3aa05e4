#include "cli/net_settings.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "cli/argument_checks.h"
#include "settings/setting_table.h"

namespace weft::cli {

void add_setting_flags(CLI::App& command, SettingFlags& flags) {
  command.add_option("--config", flags.config, "a file of settings (docs/settings.md)")
      ->check(not_empty("a file"))
      ->group("Settings");
  for (const settings::Setting& setting : settings::settings_table()) {
    if (setting.flag == nullptr) continue;
    command
        .add_option_function<std::string>(
            setting.flag,
            [&flags, &setting](const std::string& text) { flags.words[setting.key] = text; },
            fmt::format("{} [{}]", setting.help, setting.environment))
        ->group("Settings");
  }
  auto* const must = command.add_flag_callback(
      "--shm", [&flags] { flags.words["shared_memory"] = "must"; },
      "fail if the ends cannot share memory [WEFT_SHM=must]");
  auto* const off = command.add_flag_callback(
      "--no-shm", [&flags] { flags.words["shared_memory"] = "off"; },
      "over the planes also on one host [WEFT_SHM=0]");
  must->group("Settings")->excludes(off);
  off->group("Settings");
  command.footer(
      "A flag wins over the environment [NAME], that over the file, that over the default.\n"
      "The file: --config, else $WEFT_CONFIG, else ~/.config/weft/config.toml, else "
      "/etc/weft.toml");
}

}  // namespace weft::cli
