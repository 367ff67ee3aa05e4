// The counter table: every layer fills one, telemetry reads it. A counter has a name, a unit and a
// value.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace weft {

struct Counter {
  std::string_view name;  // static storage; snake_case, the layer first: "transport.retransmits"
  std::string_view unit;  // "packets", "bytes", "ps", "" for a count of events
  std::uint64_t value = 0;
};

// A snapshot, in a fixed order.
using CounterTable = std::vector<Counter>;

// The value of the counter with that name; 0 if the table has none.
inline std::uint64_t value_of(const CounterTable& table, std::string_view name) {
  for (const Counter& c : table) {
    if (c.name == name) return c.value;
  }
  return 0;
}

}  // namespace weft
