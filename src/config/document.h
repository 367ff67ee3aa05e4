// A TOML document as a plain tree of values, each with its place in the file. Only document.cc uses
// the TOML library, so that one file compiles it and no other code depends on its types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft::config {

// Lines and columns count from 1.
struct Position {
  std::uint32_t line = 1, column = 1;
};

enum class ValueKind : std::uint8_t { kString, kInteger, kReal, kBool, kDate, kArray, kTable };

struct Value {
  ValueKind kind = ValueKind::kTable;
  Position at;
  std::string key;              // name of this value in its table
  Position key_at;              // place of that name
  std::string text;             // value of kind kString
  std::int64_t integer = 0;     // value of kind kInteger
  double real = 0;              // value of kind kReal
  bool boolean = false;         // value of kind kBool
  std::vector<Value> children;  // in the order of the file

  // Null if the key is absent. REQUIRES kTable.
  const Value* find(std::string_view name) const;
};

// Returns the document, or the error "FILE:LINE:COL: what is wrong".
Result<Value> parse_document(std::string_view toml, std::string_view file_name);

// The text "FILE:LINE:COL: what".
std::string message_at(std::string_view file_name, Position at, std::string_view what);

}  // namespace weft::config
