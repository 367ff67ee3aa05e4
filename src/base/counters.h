// The counter table: every layer fills one, telemetry reads it.
//
// A counter has a name, labels, a unit, a kind and a value. Labels tell the counters of one name
// apart: "transport.retransmits" has one for each plane, "transport.drop" one for each reason. A name
// has either one counter without labels, or counters that all have the same labels; the sum over them
// is the value of the name. No two counters of a table have the same name and labels.
//
// A table is a snapshot in a fixed order, made by a question, never on the path of a packet. It is
// bounded, because every label is: a plane is below 8, a reason is one of an enumeration, and peers
// beyond kLabelledPeersMax share the label kOtherPeers. Tables per peer are made only on request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ipv6.h"

namespace weft {

enum class CounterKind : std::uint8_t {
  kCount,  // how often, or how much, since the start: it never falls
  kGauge,  // the state now
};

// The peer that a counter is about: its address on its first plane, and its process there.
struct PeerLabel {
  Ipv6 ip{};
  std::uint16_t process = 0;
  friend bool operator==(const PeerLabel&, const PeerLabel&) = default;
};
inline constexpr std::uint32_t kLabelledPeersMax = 64;
inline constexpr PeerLabel kOtherPeers{};  // all peers beyond kLabelledPeersMax

struct CounterLabels {
  // Index of the port. Where a world has shared memory, that is the port behind the planes.
  std::optional<std::uint8_t> plane{};
  std::optional<PeerLabel> peer{};
  std::optional<std::uint32_t> qp{};
  std::string_view reason{};  // static storage; snake_case; "": none
  friend bool operator==(const CounterLabels&, const CounterLabels&) = default;
};

struct Counter {
  std::string_view name;  // static storage; snake_case, the layer first: "transport.retransmits"
  std::string_view unit;  // "packets", "bytes", "ps", "events"; never ""
  std::uint64_t value = 0;
  CounterLabels labels{};
  CounterKind kind = CounterKind::kCount;
};

using CounterTable = std::vector<Counter>;

// A count for each plane.
class PerPlane {
 public:
  static constexpr std::size_t kPlanesMax = 8;

  std::uint64_t& operator[](std::uint8_t plane) { return counts_[plane]; }
  std::uint64_t operator[](std::uint8_t plane) const { return counts_[plane]; }
  std::uint64_t sum() const;

 private:
  std::array<std::uint64_t, kPlanesMax> counts_{};
};
// Adds `counter` for each of the first `planes` planes. REQUIRES planes <= kPlanesMax.
void add_per_plane(const Counter& counter, const PerPlane& counts, std::size_t planes,
                   CounterTable& table);

// True if `name` is the counter's name, or its name and reason: "transport.drop" and
// "transport.drop_stale" both name the counter of stale drops.
bool is_named(const Counter& counter, std::string_view name);

// The sum over all counters of that name; 0 if the table has none.
std::uint64_t value_of(const CounterTable& table, std::string_view name);
bool has_counter(const CounterTable& table, std::string_view name);

// Adds the values of `table` to `sum`, which may be empty. REQUIRES tables of the same layout.
void add_values(const CounterTable& table, CounterTable& sum);

// "transport.drop_stale{plane=1,peer=10.0.0.1}": the name and reason, then other labels, if any.
std::string text_of(const Counter& counter);

// The table as people and scripts read it: for every name and reason one row with the sum, and below
// it, where several counters add up to it, one row for each.
struct CounterRow {
  std::string name;  // as text_of(); of a sum without braces
  std::string_view unit;
  std::uint64_t value = 0;
};
std::vector<CounterRow> rows_of(const CounterTable& table);

}  // namespace weft
