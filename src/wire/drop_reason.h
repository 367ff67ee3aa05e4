// Why a packet from the network was dropped. The drop is counted and traced; nothing else happens.
// All layers share this list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft {

enum class DropReason : std::uint8_t {
  kTooShort,      // fewer bytes than the opcode needs
  kBadOpcode,     // not one of the twelve opcodes of MRC
  kBadVersion,    // BTH.TVer is not 0
  kBadHeader,     // a field has an invalid value
  kDamaged,       // the ICRC does not match
  kUnknownQp,     // no such QP here, or not in a state to receive
  kUnknownPeer,   // the source is not one of the QP's peer addresses
  kNotExpected,   // a response without a matching request
  kOutOfWindow,   // a PSN outside the window
  kQpInError,     // the QP is in ERR
  kNoBuffer,      // one of our bounded tables or queues is full
  kStale,         // refers to something that has already completed
  kNoSession,     // sealed: no session with keys for this packet
  kForged,        // sealed: the tag is missing or does not match
  kReplayed,      // sealed: seen before, or too old to tell
  kPortDisabled,  // the controller disabled the port on which it arrived
};
inline constexpr std::size_t kDropReasonCount = 16;

// The name in snake_case, such as "too_short".
std::string_view to_string(DropReason reason);

}  // namespace weft
