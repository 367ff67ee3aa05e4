// PeerKind: what is at the other end.
#pragma once

#include <cstdint>

namespace weft::wire {

// A NIC speaks MRC 1.0 and nothing else: it sends to port 4791 from any port, and its ICRC covers
// the whole packet. Processes of Weft's software share an address, and their ports distinguish
// them. Between software ends more is allowed (transport/peer_kind.h).
enum class PeerKind : std::uint8_t { kNic, kSoftware };

}  // namespace weft::wire
