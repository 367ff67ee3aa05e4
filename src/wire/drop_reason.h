// Why a packet from the network was dropped: counted, traced, forgotten. One list for every layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft {

enum class DropReason : std::uint8_t {
  kTooShort,      // fewer bytes than the opcode needs
  kBadOpcode,     // not one of MRC's twelve
  kBadVersion,    // BTH.TVer is not 0
  kBadHeader,     // a field has a value that cannot be
  kDamaged,       // the ICRC does not match
  kUnknownQp,     // no such QP here, or not in a state to receive
  kUnknownPeer,   // the source is not one of the QP's peer addresses
  kNotExpected,   // an answer to a question that was not asked
  kOutOfWindow,   // a PSN outside the window
  kQpInError,     // the QP is in ERR
  kNoBuffer,      // a bound of ours is reached
  kStale,         // about something that is long over
  kNoSession,     // secured: no session with keys for it
  kForged,        // secured: the tag does not match, or there is none
  kReplayed,      // secured: seen before, or too old to know
  kPortDisabled,  // the controller disabled the port it came in on
};
inline constexpr std::size_t kDropReasonCount = 16;

// "too_short" ...
std::string_view to_string(DropReason reason);

}  // namespace weft
