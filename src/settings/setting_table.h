// The table of all settings of NetSettings: the names of each, and the one parser of its values.
// Pure.
#pragma once

#include <span>
#include <string_view>

#include "settings/net_settings.h"

namespace weft::settings {

struct Setting {
  const char* key;          // in the file
  const char* flag;         // null: it has flags of its own kind
  const char* environment;  // the variable
  const char* help;
  const char* expected;  // for messages
  // Takes the value over; false if it will not do.
  bool (*set)(std::string_view text, NetSettings& out);
};

std::span<const Setting> settings_table();
// Null: there is none of that key.
const Setting* find_setting(std::string_view key);

}  // namespace weft::settings
