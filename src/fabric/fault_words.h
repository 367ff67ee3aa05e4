// The words for faults, one table for each enumeration of fault.h. Scenario files (scenario/names.h),
// requests to the software switch (softswitch/fault_text.h) and messages of the lab all use them.
#pragma once

#include <string_view>

#include "fabric/fault.h"

namespace weft::fabric {

template <typename E>
struct FaultWord {
  std::string_view word;
  E value;
};

// Actions on a host are missing: no request to a switch can name them.
inline constexpr FaultWord<FaultAction> kFaultActionWords[] = {
    {"link-down", FaultAction::kLinkDown},
    {"link-up", FaultAction::kLinkUp},
    {"link-rate", FaultAction::kLinkRate},
    {"impair", FaultAction::kImpair},
    {"heal", FaultAction::kHeal}};
inline constexpr FaultWord<FaultPlace> kFaultPlaceWords[] = {
    {"link", FaultPlace::kLink},
    {"all-links", FaultPlace::kAllLinks},
    {"nic-receive", FaultPlace::kNicReceive}};
inline constexpr FaultWord<ImpairmentKind> kImpairmentWords[] = {
    {"loss", ImpairmentKind::kLoss},
    {"burst-loss", ImpairmentKind::kBurstLoss},
    {"reorder", ImpairmentKind::kReorder},
    {"duplicate", ImpairmentKind::kDuplicate},
    {"corrupt", ImpairmentKind::kCorrupt},
    {"ev-loss", ImpairmentKind::kEvLoss},
    {"first-transport-ack", ImpairmentKind::kFirstTransportAck},
    {"first-nak", ImpairmentKind::kFirstNak}};

// "" if the table has no such value.
template <typename E, std::size_t N>
constexpr std::string_view word_of(const FaultWord<E> (&words)[N], E value) {
  for (const FaultWord<E>& row : words) {
    if (row.value == value) return row.word;
  }
  return {};
}
constexpr std::string_view word_of(FaultAction action) {
  return word_of(kFaultActionWords, action);
}
constexpr std::string_view word_of(FaultPlace place) { return word_of(kFaultPlaceWords, place); }
constexpr std::string_view word_of(ImpairmentKind kind) { return word_of(kImpairmentWords, kind); }

}  // namespace weft::fabric
