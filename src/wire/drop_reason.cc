#include "wire/drop_reason.h"

#include <array>

namespace weft {

namespace {
constexpr std::array<std::string_view, kDropReasonCount> kNames = {
    "too_short",    "bad_opcode",   "bad_version",   "bad_header",    "damaged",   "unknown_qp",
    "unknown_peer", "not_expected", "out_of_window", "qp_in_error",   "no_buffer", "stale",
    "no_session",   "forged",       "replayed",      "port_disabled",
};
}  // namespace

std::string_view to_string(DropReason reason) {
  const auto index = static_cast<std::size_t>(reason);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace weft
