// The table of all settings of NetSettings: the names of each, and its only parser. Pure.
#pragma once

#include <span>
#include <string_view>

#include "settings/net_settings.h"

namespace weft::settings {

struct Setting {
  const char* key;          // in the file
  const char* flag;         // null: the flags have another form
  const char* environment;  // the variable
  const char* help;
  const char* expected;  // for messages
  // Sets the value; false if the text is not valid.
  bool (*set)(std::string_view text, NetSettings& out);
};

std::span<const Setting> settings_table();
// Null if no setting has that key.
const Setting* find_setting(std::string_view key);

}  // namespace weft::settings
