// Shared by the files that implement mrc_ctl.h.
#pragma once

#include <mrc/mrc_ctl.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "control/ctl_error.h"
#include "control/ctl_model.h"
#include "device/c_edge.h"
#include "device/mrc_objects.h"
#include "os/log.h"

namespace weft::device {

// The number that a program stored in an enumeration, even if it equals no enumerator.
template <typename E>
std::uint32_t raw(const E& value) {
  static_assert(std::is_enum_v<E> && sizeof(E) == sizeof(std::uint32_t));
  std::uint32_t out = 0;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

// Logs the reason of a failure, and returns the errno value for the program.
inline int code_of(const control::CtlError& error) {
  os::log(os::LogLevel::kDebug, "mrc_ctl: {}", error.message);
  return error.code;
}
inline int code_of(const control::CtlResult<void>& result) {
  return result ? 0 : code_of(result.error());
}

// Whether the mask has no bit that the API does not know. An unknown bit makes a call invalid.
inline bool has_only_known_bits(int mask, unsigned known) {
  return (static_cast<unsigned>(mask) & ~known) == 0;
}
inline constexpr unsigned kVendorBit = 1u << 31;

inline control::ControllerState& controller(mrc_context& context) {
  return context.verbs.device.controller();
}

inline control::CtlEv ev_from(const mrc_ctl_ev& ev) {
  control::CtlEv out{.port = ev.port};
  std::memcpy(out.value.data(), ev.val, out.value.size());
  return out;
}
inline mrc_ctl_ev to_api(const control::CtlEv& ev) {
  mrc_ctl_ev out{};
  std::memcpy(out.val, ev.value.data(), ev.value.size());
  out.port = ev.port;
  return out;
}

inline control::VendorConfig vendor_from(const std::uint8_t (&bytes)[MRC_CTL_MAX_VENDOR_CFG_SIZE]) {
  control::VendorConfig out{};
  std::memcpy(out.data(), bytes, out.size());
  return out;
}
inline void copy_vendor(const control::VendorConfig& from,
                        std::uint8_t (&to)[MRC_CTL_MAX_VENDOR_CFG_SIZE]) {
  std::memcpy(to, from.data(), from.size());
}

// The state for the number that a program wrote; nullopt if no state has this number.
inline std::optional<control::ProfileState> profile_state(std::uint32_t value) {
  if (value > static_cast<std::uint32_t>(control::ProfileState::kOnline)) return std::nullopt;
  return static_cast<control::ProfileState>(value);
}

}  // namespace weft::device
