// A TOML document as a plain tree of values, each with its place in the file. The TOML library is
// behind this header only, so that one file compiles it and the reading of scenarios does not
// depend on its types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft::config {

// Counts from 1.
struct Position {
  std::uint32_t line = 1, column = 1;
};

enum class ValueKind : std::uint8_t { kString, kInteger, kReal, kBool, kDate, kArray, kTable };

struct Value {
  ValueKind kind = ValueKind::kTable;
  Position at;
  std::string key;              // in a table: its name there,
  Position key_at;              // and where that stands
  std::string text;             // kString
  std::int64_t integer = 0;     // kInteger
  double real = 0;              // kReal
  bool boolean = false;         // kBool
  std::vector<Value> children;  // kArray: in order; kTable: as they come in the file

  // Null if there is none. REQUIRES kTable.
  const Value* find(std::string_view name) const;
};

// The document, or "FILE:LINE:COL: what is wrong".
Result<Value> parse_document(std::string_view toml, std::string_view file_name);

// "FILE:LINE:COL: what".
std::string message_at(std::string_view file_name, Position at, std::string_view what);

}  // namespace weft::config
