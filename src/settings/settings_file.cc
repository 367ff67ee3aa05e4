// The configuration file: [net] for every device, [device.NAME] for one device.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "config/reader.h"
#include "settings/net_settings.h"
#include "settings/setting_table.h"

namespace weft::settings {
namespace {

// A value of the file, in the text form that a flag would have; nullopt if it has none.
std::optional<std::string> text_of(const config::Value& value) {
  using Kind = config::ValueKind;
  switch (value.kind) {
    case Kind::kString:
      return value.text;
    case Kind::kInteger:
      return std::to_string(value.integer);
    case Kind::kBool:
      return value.boolean ? "on" : "off";
    case Kind::kArray: {
      std::string all;
      for (const config::Value& item : value.children) {
        if (item.kind != Kind::kString) return std::nullopt;
        all += (all.empty() ? "" : ",") + item.text;
      }
      return all;
    }
    default:
      return std::nullopt;
  }
}

std::string unknown_key(const std::string& key) {
  std::vector<std::string> known;
  std::string list;
  for (const Setting& setting : settings_table()) {
    known.emplace_back(setting.key);
    list += (list.empty() ? "" : ", ") + known.back();
  }
  const std::string_view near = config::nearest(key, known);
  return near.empty() ? fmt::format("{} is not a setting; expected one of {}", key, list)
                      : fmt::format("{} is not a setting; did you mean {}?", key, near);
}

// The number in a device's name; nullopt if the text is not the name of a device.
std::optional<std::uint32_t> number_of(std::string_view name) {
  constexpr std::string_view kBefore = "weft";
  if (!name.starts_with(kBefore)) return std::nullopt;
  const std::string_view digits = name.substr(kBefore.size());
  std::uint32_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  const bool plain = digits.size() == 1 || (!digits.empty() && digits[0] != '0');
  if (!plain || parsed.ec != std::errc() || parsed.ptr != end || number >= kDevicesMax)
    return std::nullopt;
  return number;
}

void take_table(const config::Value& table, config::Report& report, NetSettings& out) {
  for (const config::Value& value : table.children) {
    const Setting* const setting = find_setting(value.key);
    const auto text = text_of(value);
    if (setting == nullptr) {
      report.fail(value.key_at, unknown_key(value.key));
    } else if (!text || !setting->set(*text, out)) {
      report.fail(value.at,
                  fmt::format("{}{}: expected {}", value.key,
                              text ? fmt::format(" = {}", *text) : "", setting->expected));
    }
  }
  if (table.find("planes") != nullptr && table.find("interfaces") != nullptr) {
    report.fail(table.find("interfaces")->key_at,
                "planes and interfaces exclude each other; leave one out");
  }
}

void take_device(const config::Value& table, config::Report& report, NetSettings& out) {
  if (!number_of(table.key)) {
    return report.fail(table.key_at, fmt::format("{} is no name of a device; expected weft0 to "
                                                 "weft{}",
                                                 table.key, kDevicesMax - 1));
  }
  if (table.kind != config::ValueKind::kTable) {
    return report.fail(table.at, fmt::format("{} is not a table; expected a line [device.{}] and "
                                             "keys below it",
                                             table.key, table.key));
  }
  if (table.key != kFirstDevice && table.find("planes") == nullptr &&
      table.find("interfaces") == nullptr) {
    report.fail(table.key_at, fmt::format("{} has no planes of its own; expected planes or "
                                          "interfaces in [device.{}]",
                                          table.key, table.key));
  }
  take_table(table, report, out);
}

bool is_net(const config::Value& table) { return table.key == "net"; }

}  // namespace

Result<void> apply_file(std::string_view toml, std::string_view file_name, NetSettings& out,
                        std::string_view device) {
  WEFT_TRY(const config::Value root, config::parse_document(toml, file_name));
  config::Report report(file_name);
  // [net] is applied first, wherever it stands in the file, so that a device's own settings win.
  for (const config::Value& table : root.children) {
    if (!is_net(table)) continue;
    if (table.kind == config::ValueKind::kTable) {
      take_table(table, report, out);
    } else {
      report.fail(table.at, "net is not a table; expected a line [net] and keys below it");
    }
  }
  for (const config::Value& table : root.children) {
    if (is_net(table)) continue;
    if (table.key == "device" && table.kind == config::ValueKind::kTable) {
      for (const config::Value& one : table.children) {
        NetSettings others;
        take_device(one, report, one.key == device ? out : others);
      }
      continue;
    }
    report.fail(
        table.key_at,
        find_setting(table.key) != nullptr
            ? fmt::format("{} stands in no table; expected a line [net] above it", table.key)
            : fmt::format("{} is not known; expected [net] or [device.NAME]", table.key));
  }
  if (report.failed()) return report.error();
  return {};
}

Result<std::vector<std::string>> device_names(std::string_view toml, std::string_view file_name) {
  NetSettings ignored;
  WEFT_CHECK(apply_file(toml, file_name, ignored));
  WEFT_TRY(const config::Value root, config::parse_document(toml, file_name));
  std::vector<std::uint32_t> numbers{0};
  if (const config::Value* const devices = root.find("device")) {
    for (const config::Value& one : devices->children) numbers.push_back(*number_of(one.key));
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<std::string> names;
  for (const std::uint32_t number : numbers) names.push_back(fmt::format("weft{}", number));
  return names;
}

}  // namespace weft::settings
