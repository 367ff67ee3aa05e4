// The table of all settings of NetSettings: the names of each, and its only parser. Pure.
#pragma once

#include <span>
#include <string_view>

#include "settings/net_settings.h"

namespace weft::settings {

struct Setting {
  const char* key;          // the name in the file
  const char* flag;         // null: the flags have another form
  const char* environment;  // the name of the environment variable
  const char* help;
  const char* expected;  // describes valid values in error messages
  // Parses the text and sets the value. False if the text is not valid.
  bool (*set)(std::string_view text, NetSettings& out);
};

std::span<const Setting> settings_table();
// The setting with that key; null if there is none.
const Setting* find_setting(std::string_view key);

}  // namespace weft::settings
