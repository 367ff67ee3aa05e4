// Changes of profiles that several controller tests use.
#pragma once

#include <cstdint>
#include <vector>

#include "control/ctl_profiles.h"

namespace weft::control::testing {

inline CtlEv stev(std::uint32_t value, std::uint8_t port) {
  return {.value = fabric::ev_bytes(value), .port = port};
}

// A STEV format goes from INIT to OFFLINE.
inline FormatChange format_change(std::vector<std::uint32_t> widths) {
  return {.state = ProfileState::kOffline, .mode = 1, .widths = std::move(widths)};
}

// An EV profile that uses format profile 13 goes from INIT to OFFLINE; `fields` are not set.
inline EvChange ev_change(fabric::EvMode mode, std::uint32_t count) {
  return {.state = ProfileState::kOffline,
          .mode = static_cast<std::uint32_t>(mode),
          .format = 13,
          .count = count,
          .min_active = count / 4,
          .event_mask = 3};
}

}  // namespace weft::control::testing
