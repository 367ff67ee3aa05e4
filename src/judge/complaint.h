// Complaint: one violation of a rule in a run, as one sentence. Complaints: a bounded collection.
//
// A broken run can violate one rule thousands of times. Each rule therefore keeps only its first
// few complaints, so that those of other rules stay visible. All complaints are counted, kept or
// not. Owned by one Judge.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace weft::judge {

// README.md says what each rule requires.
enum class Rule : std::uint8_t {
  kMemory,
  kCompletion,
  kWimmOrder,
  kWimmLimit,
  kEv,
  kPsnWindow,
  kCwnd,
  kInflight,
  kStuck,
  kConservation,
  kPacket,
  kAck,
  kError,
  kTrace,
};
inline constexpr std::size_t kRuleCount = static_cast<std::size_t>(Rule::kTrace) + 1;

// The rule's short name: "wimm-order".
std::string_view name(Rule rule);

struct Complaint {
  Time at;
  std::uint32_t host = 0;
  std::uint32_t qpn = 0;  // 0: the complaint is not about a single QP
  std::string_view rule;  // name() of it; static storage
  std::string text;       // one sentence, without a full stop
};

// One line for people: "12.345 us, host 3, qp 0x000011: wimm-order: ...".
std::string to_string(const Complaint& complaint);

// The time, host and QP of an event.
struct Place {
  Time at;
  std::uint32_t host = 0;
  std::uint32_t qpn = 0;
};

class Complaints {
 public:
  struct KeptLimits {
    std::size_t kept_max = 64;
    std::size_t kept_per_rule_max = 8;
  };
  explicit Complaints(KeptLimits limits) : limits_(limits) {}

  // Counts a complaint, and keeps it if there is room. Formats the text only then.
  template <typename... Parts>
  void add(Place place, Rule rule, fmt::format_string<Parts...> text, Parts&&... parts) {
    if (!count(rule)) return;
    kept_.push_back({.at = place.at,
                     .host = place.host,
                     .qpn = place.qpn,
                     .rule = name(rule),
                     .text = fmt::format(text, std::forward<Parts>(parts)...)});
  }

  const std::vector<Complaint>& kept() const { return kept_; }
  std::uint64_t total() const { return total_; }

 private:
  // Counts a complaint. Returns true if there is room to keep it.
  bool count(Rule rule);

  KeptLimits limits_;
  std::vector<Complaint> kept_;
  std::array<std::size_t, kRuleCount> kept_per_rule_{};
  std::uint64_t total_ = 0;
};

}  // namespace weft::judge
