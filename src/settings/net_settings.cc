#include "settings/net_settings.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "os/address.h"
#include "os/file_text.h"
#include "settings/setting_table.h"

namespace weft::settings {
namespace {

// The setting as the user wrote it, for messages: "--mtu 5" or "WEFT_MTU=5".
std::string shown(const Setting& setting, SettingSource source, const std::string& text) {
  if (source == SettingSource::kEnvironment) return fmt::format("{}={}", setting.environment, text);
  if (setting.flag == nullptr) return text == "off" ? "--no-shm" : "--shm";
  return fmt::format("{} {}", setting.flag, text);
}

// Returns an empty path if there is no file.
Result<std::string> find_file(const std::string& flag) {
  namespace fs = std::filesystem;
  const auto variable = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (!flag.empty()) return flag;
  if (const std::string named = variable("WEFT_CONFIG"); !named.empty()) return named;
  std::vector<std::string> candidates;
  const std::string xdg = variable("XDG_CONFIG_HOME"), home = variable("HOME");
  if (!xdg.empty()) {
    candidates.push_back(xdg + "/weft/config.toml");
  } else if (!home.empty()) {
    candidates.push_back(home + "/.config/weft/config.toml");
  }
  candidates.emplace_back("/etc/weft.toml");
  for (const std::string& candidate : candidates) {
    std::error_code why;
    const auto type = fs::symlink_status(candidate, why).type();
    // The folder may be closed to this user, as after `su`. The program goes on without the file,
    // but warns, because the file may name a secret.
    if (type == fs::file_type::none) {
      os::log(os::LogLevel::kWarn, "settings in {} are not used: {}", candidate, why.message());
    } else if (type != fs::file_type::not_found) {
      return candidate;  // may be a dangling link: opening it then fails with a message
    }
  }
  return std::string();
}

Result<std::string> read_file(const std::string& path) {
  constexpr std::size_t kSizeMax = 1u << 20;
  return os::file_text(path, "a file of settings, see docs/settings.md", kSizeMax);
}

}  // namespace

Result<void> apply_words(const SettingWords& words, SettingSource source, NetSettings& out) {
  for (const auto& [key, text] : words) {
    const Setting* const setting = find_setting(key);
    WEFT_ASSERT(setting != nullptr);
    if (setting->set(text, out)) continue;
    return Error{ErrorKind::kInvalid,
                 fmt::format("{}: expected {}", shown(*setting, source, text), setting->expected)};
  }
  if (words.contains("planes") && words.contains("interfaces")) {
    return Error{ErrorKind::kInvalid,
                 source == SettingSource::kFlag
                     ? "--planes and --ifname exclude each other; leave one out"
                     : "WEFT_PLANES and WEFT_IFNAME exclude each other; unset one"};
  }
  return {};
}

SettingWords environment_words() {
  SettingWords words;
  for (const Setting& setting : settings_table()) {
    const char* const text = std::getenv(setting.environment);
    // An empty variable counts as unset, because scripts unset variables by emptying them.
    if (text != nullptr && *text != '\0') words[setting.key] = text;
  }
  return words;
}

Result<NetSettings> load_settings(const SettingFlags& flags, const std::string& device) {
  NetSettings settings;
  WEFT_TRY(const std::string path, find_file(flags.config));
  std::vector<std::string> known{kFirstDevice};
  if (!path.empty()) {
    WEFT_TRY(const std::string text, read_file(path));
    WEFT_TRY(known, device_names(text, path));
    WEFT_CHECK(apply_file(text, path, settings, device));
  }
  if (std::find(known.begin(), known.end(), device) == known.end()) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("{} is no device here; expected one of {} (a file of settings may have "
                    "more, as [device.weft1])",
                    device, fmt::join(known, ", "))};
  }
  SettingWords words = environment_words();
  // Planes in the environment are those of the first device, because no two devices share planes.
  if (device != kFirstDevice) {
    words.erase("planes");
    words.erase("interfaces");
  }
  WEFT_CHECK(apply_words(words, SettingSource::kEnvironment, settings));
  WEFT_CHECK(apply_words(flags.words, SettingSource::kFlag, settings));
  os::set_log_level(settings.log);
  if (!path.empty()) os::log(os::LogLevel::kInfo, "settings of {} from {}", device, path);
  return settings;
}

Result<std::vector<std::string>> configured_devices(const SettingFlags& flags) {
  WEFT_TRY(const std::string path, find_file(flags.config));
  if (path.empty()) return std::vector<std::string>{kFirstDevice};
  WEFT_TRY(const std::string text, read_file(path));
  return device_names(text, path);
}

Result<void> set_log_level_or(os::LogLevel otherwise) {
  NetSettings settings;
  settings.log = otherwise;
  SettingWords words = environment_words();
  std::erase_if(words, [](const auto& word) { return word.first != "log"; });
  WEFT_CHECK(apply_words(words, SettingSource::kEnvironment, settings));
  os::set_log_level(settings.log);
  return {};
}

Result<std::vector<os::PlaneChoice>> planes_of(const NetSettings& settings) {
  WEFT_TRY(const auto interfaces, os::list_interfaces());
  if (!settings.interfaces.empty()) return os::planes_on(settings.interfaces, interfaces);
  std::vector<Ipv6> addresses = os::loopback_planes();
  if (!settings.planes.empty()) {
    addresses.clear();
    for (const std::string& text : settings.planes) {
      WEFT_TRY(const Ipv6 address, os::parse_address(text));
      addresses.push_back(address);
    }
  }
  std::vector<os::PlaneChoice> out;
  for (const Ipv6& address : addresses) {
    const os::Interface* const on = os::interface_of(address, interfaces);
    out.push_back({address, on == nullptr ? "" : on->name});
  }
  return out;
}

}  // namespace weft::settings
