// PeerKind: the kind of the peer: a NIC or software.
#pragma once

#include <cstdint>

namespace weft::wire {

// A NIC speaks MRC 1.0 and nothing else: it sends from any port to port 4791, and its ICRC covers
// the whole packet. Weft's software: several processes share an address, and their ports
// distinguish them. Between two software ends more features are allowed (transport/peer_kind.h).
enum class PeerKind : std::uint8_t { kNic, kSoftware };

}  // namespace weft::wire
