#include "cli/ctl_words.h"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace weft::cli {
namespace {

Error invalid(std::string message) { return {ErrorKind::kInvalid, std::move(message)}; }

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

// Reads a decimal number, or a hexadecimal number that begins with 0x.
std::optional<std::uint32_t> number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

struct NsccKey {
  const char* name;
  std::uint32_t control::NsccSettings::*whole;
  float control::NsccSettings::*real;
};
using Nscc = control::NsccSettings;
constexpr NsccKey kNsccKeys[] = {
    {"adjust_bytes_threshold", &Nscc::adjust_bytes, nullptr},
    {"adjust_period_threshold", &Nscc::adjust_period_ns, nullptr},
    {"base_rtt", &Nscc::base_rtt_ns, nullptr},
    {"max_cwnd", &Nscc::cwnd_bytes_max, nullptr},
    {"qa_threshold", &Nscc::qa_threshold_ns, nullptr},
    {"target_delay", &Nscc::target_delay_ns, nullptr},
    {"eta", nullptr, &Nscc::eta},
    {"fi", nullptr, &Nscc::fi},
    {"fi_scale", nullptr, &Nscc::fi_scale},
    {"gamma", nullptr, &Nscc::gamma},
    {"max_md_jump", nullptr, &Nscc::max_md_jump},
};

template <typename E, std::size_t N>
nlohmann::json name_json(const std::optional<E>& value, const Name<E> (&names)[N]) {
  if (!value) return nullptr;
  return std::string(config::name_of(names, *value));
}

template <typename T>
nlohmann::json maybe(const std::optional<T>& value) {
  if (!value) return nullptr;
  return *value;
}

template <typename E, std::size_t N>
std::string shown(E value, const Name<E> (&names)[N]) {
  return std::string(config::name_of(names, value));
}

}  // namespace

Result<control::CtlEv> ev_from(std::string_view text) {
  const auto wrong = [&] {
    return invalid(fmt::format(
        "EV {}: expected bytes and a port as f3b04256@1, at most 32 bytes, ports from 1", text));
  };
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return wrong();
  const auto port = number(text.substr(at + 1));
  if (!port || *port == 0 || *port > world::kPortsMax) return wrong();
  std::string_view hex = text.substr(0, at);
  if (hex.starts_with("0x")) hex.remove_prefix(2);
  control::CtlEv ev;
  ev.port = static_cast<std::uint8_t>(*port);
  std::size_t digits = 0;
  for (const char c : hex) {
    if (c == ':') continue;
    const int value = digit(c);
    if (value < 0 || digits == 2 * ev.value.size()) return wrong();
    ev.value[digits / 2] |= static_cast<std::byte>(digits % 2 == 0 ? value << 4 : value);
    ++digits;
  }
  if (digits == 0 || digits % 2 != 0) return wrong();
  return ev;
}

std::string text_of(const control::CtlEv& ev) {
  if (!ev.is_populated()) return "-";
  std::size_t size = ev.value.size();
  while (size > 4 && ev.value[size - 1] == std::byte{0}) --size;
  std::string out;
  for (std::size_t i = 0; i < size; ++i)
    out += fmt::format("{:02x}", static_cast<unsigned>(ev.value[i]));
  return fmt::format("{}@{}", out, static_cast<unsigned>(ev.port));
}

Result<fabric::EvField> field_from(std::string_view text) {
  const auto parts = split(text, ':');
  fabric::EvField field;
  std::uint32_t* const values[] = {&field.width, &field.init_val, &field.min, &field.max,
                                   &field.mask};
  bool good = parts.size() == 5;
  for (std::size_t i = 0; good && i < 5; ++i) {
    const auto value = number(parts[i]);
    good = value.has_value();
    if (value) *values[i] = *value;
  }
  if (good) return field;
  return invalid(
      fmt::format("field {}: expected WIDTH:INIT:MIN:MAX:MASK as 16:0x100:1:15:0xf", text));
}

std::string text_of(const fabric::EvField& field) {
  return fmt::format("{}:{:#x}:{}:{}:{:#x}", field.width, field.init_val, field.min, field.max,
                     field.mask);
}

Result<std::vector<std::uint32_t>> widths_from(std::string_view text) {
  std::vector<std::uint32_t> out;
  for (const std::string_view part : split(text, ',')) {
    const auto width = number(part);
    if (!width)
      return invalid(fmt::format("widths {}: expected bits of each field as 16,16", text));
    out.push_back(*width);
  }
  return out;
}

Result<std::uint32_t> event_mask_from(std::string_view text) {
  std::uint32_t mask = 0;
  if (text == "none") return mask;
  for (const std::string_view part : split(text, ',')) {
    WEFT_TRY(const control::EvState state, named("events", part, kEvStates));
    mask |= static_cast<std::uint32_t>(state);
  }
  return mask;
}

std::string event_mask_text(std::uint32_t mask) {
  std::string out;
  for (const auto& name : kEvStates) {
    if ((mask & static_cast<std::uint32_t>(name.value)) == 0) continue;
    out += (out.empty() ? "" : ",") + std::string(name.name);
  }
  return out.empty() ? "none" : out;
}

Result<void> set_nscc(std::string_view word, control::NsccSettings& out) {
  const std::size_t at = word.find('=');
  const std::string_view key = word.substr(0, at);
  const std::string value(at == std::string_view::npos ? "" : word.substr(at + 1));
  const auto wrong = [&] { return invalid(fmt::format("{}: expected a number", word)); };
  const auto whole = number(value);
  if (key == "disable_qa" || key == "qa_gate") {
    if (!whole || *whole > 255) return wrong();
    if (key == "disable_qa") out.disable_qa = *whole != 0;
    if (key == "qa_gate") out.qa_gate = static_cast<std::uint8_t>(*whole);
    return {};
  }
  for (const NsccKey& known : kNsccKeys) {
    if (key != known.name) continue;
    if (known.whole != nullptr) {
      if (!whole) return wrong();
      out.*known.whole = *whole;
      return {};
    }
    char* end = nullptr;
    out.*known.real = std::strtof(value.c_str(), &end);
    if (value.empty() || *end != '\0') return wrong();
    return {};
  }
  std::string list = "disable_qa, qa_gate";
  for (const NsccKey& known : kNsccKeys) list += fmt::format(", {}", known.name);
  return invalid(fmt::format("{}: no such parameter of NSCC; expected one of {}", key, list));
}

nlohmann::json to_json(const control::FormatProfile& p) {
  return {{"state", shown(p.state, kProfileStates)},
          {"mode", name_json(p.mode, kFormatModes)},
          {"widths", maybe(p.widths)}};
}

nlohmann::json to_json(const control::EvProfileRecord& p) {
  nlohmann::json fields = nlohmann::json::array(), evs = nlohmann::json::array();
  if (p.fields) {
    for (const fabric::EvField& f : *p.fields) {
      fields.push_back({{"width", f.width},
                        {"init", f.init_val},
                        {"min", f.min},
                        {"max", f.max},
                        {"mask", f.mask}});
    }
  }
  for (const control::EvEntry& entry : p.evs) {
    evs.push_back(
        {{"ev", text_of(entry.ev)},
         {"state", entry.ev.is_populated() ? shown(entry.state, kEvStates) : "unpopulated"}});
  }
  return {{"state", shown(p.state, kProfileStates)},
          {"mode", name_json(p.mode, kEvModes)},
          {"format", maybe(p.format)},
          {"count", maybe(p.count)},
          {"min_active", maybe(p.min_active)},
          {"events", p.event_mask ? nlohmann::json(event_mask_text(*p.event_mask)) : nullptr},
          {"fields", fields},
          {"evs", evs}};
}

nlohmann::json to_json(const control::CcProfile& p) {
  nlohmann::json out = {{"state", shown(p.state, kProfileStates)},
                        {"algorithm", name_json(p.algorithm, kAlgorithms)},
                        {"config", nullptr}};
  if (!p.nscc) return out;
  nlohmann::json config = {{"disable_qa", p.nscc->disable_qa ? 1 : 0},
                           {"qa_gate", p.nscc->qa_gate}};
  for (const NsccKey& key : kNsccKeys) {
    if (key.whole != nullptr) {
      config[key.name] = (*p.nscc).*key.whole;
    } else {
      config[key.name] = (*p.nscc).*key.real;
    }
  }
  out["config"] = config;
  return out;
}

}  // namespace weft::cli
