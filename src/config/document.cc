#include "config/document.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "config/ascii.h"

namespace weft::config {
namespace {
// Thrown in place of the TOML library's assertions: invalid input reaches some of them, and a
// mistake in a file must not end the program.
struct LibraryGaveUp : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void give_up(const char* what) { throw LibraryGaveUp(what); }
}  // namespace
}  // namespace weft::config

#define TOML_ASSERT(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::weft::config::give_up(#condition))
#include <toml++/toml.h>

namespace weft::config {
namespace {

constexpr std::size_t kMessageSizeMax = 1000;

Position position_of(const toml::source_region& region) {
  if (region.begin.line == 0) return {};
  return {region.begin.line, region.begin.column};
}

// The position at which a line has too many dots, if any. The library and convert() recurse once
// for each part of a dotted key, so the number of parts must be bounded. A key lies in one line,
// and no useful line has so many dots.
std::optional<Position> too_deep(std::string_view text) {
  constexpr std::uint32_t kDotsMax = 1000;
  Position at{.line = 1, .column = 0};
  std::uint32_t dots = 0;
  for (const char c : text) {
    ++at.column;
    if (c == '\n') {
      at = {.line = at.line + 1, .column = 0};
      dots = 0;
    } else if (c == '.' && ++dots > kDotsMax) {
      return at;
    }
  }
  return {};
}

Value convert(const toml::node& node) {
  Value value;
  value.at = position_of(node.source());
  if (const toml::table* table = node.as_table()) {
    value.kind = ValueKind::kTable;
    for (const auto& [key, child] : *table) {
      value.children.push_back(convert(child));
      value.children.back().key = std::string(key.str());
      value.children.back().key_at = position_of(key.source());
    }
    std::stable_sort(value.children.begin(), value.children.end(),
                     [](const Value& a, const Value& b) {
                       return std::tie(a.key_at.line, a.key_at.column) <
                              std::tie(b.key_at.line, b.key_at.column);
                     });
  } else if (const toml::array* array = node.as_array()) {
    value.kind = ValueKind::kArray;
    for (const toml::node& child : *array) value.children.push_back(convert(child));
  } else if (const auto* text = node.as_string()) {
    value.kind = ValueKind::kString;
    value.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = ValueKind::kInteger;
    value.integer = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    value.kind = ValueKind::kReal;
    value.real = real->get();
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = ValueKind::kBool;
    value.boolean = boolean->get();
  } else {
    value.kind = ValueKind::kDate;
  }
  return value;
}

}  // namespace

const Value* Value::find(std::string_view name) const {
  for (const Value& child : children) {
    if (child.key == name) return &child;
  }
  return nullptr;
}

Result<Value> parse_document(std::string_view toml, std::string_view file_name) {
  // Some editors begin every file with a byte order mark.
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (toml.starts_with(kByteOrderMark)) toml.remove_prefix(kByteOrderMark.size());
  const auto ascii = to_ascii(toml);
  if (!ascii) {
    const TextMistake& mistake = ascii.error();
    return Error{ErrorKind::kInvalid,
                 message_at(file_name, mistake.at, "not TOML: " + mistake.what)};
  }
  if (const auto at = too_deep(*ascii)) {
    return Error{ErrorKind::kInvalid,
                 message_at(file_name, *at, "a key of more than 1000 parts; expected a few")};
  }
  try {
    return convert(toml::parse(*ascii));
  } catch (const toml::parse_error& error) {
    return Error{ErrorKind::kInvalid, message_at(file_name, position_of(error.source()),
                                                 "not TOML: " + std::string(error.description()))};
  } catch (const LibraryGaveUp&) {
    return Error{
        ErrorKind::kInvalid,
        message_at(file_name, {}, "not TOML; expected tables and keys, see docs/scenarios.md")};
  }
}

std::string message_at(std::string_view file_name, Position at, std::string_view what) {
  std::string message = std::string(file_name) + ":" + std::to_string(at.line) + ":" +
                        std::to_string(at.column) + ": " + std::string(what);
  // Cuts the message to one line of bounded length, whatever the file contains.
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  if (message.size() > kMessageSizeMax) message.replace(kMessageSizeMax, std::string::npos, "...");
  return message;
}

}  // namespace weft::config
