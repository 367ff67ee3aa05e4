// How packets carry an EV on a real network (docs/decisions/0020). Both ends must agree.
#pragma once

#include <cstdint>

namespace weft::fabric {

//   kUdpPort       an EV is a UDP source port; switches that hash flows give each its own path
//   kPortAndLabel  the same with the IPv6 flow label: more EVs than sockets (STEV)
//   kSrv6          the destination is the carrier of a uSID list, and the flow label holds the EV
//                  as an index
enum class EvCarrier : std::uint8_t { kUdpPort, kPortAndLabel, kSrv6 };

// Where the uSIDs are. kCarrier, for the lab: in the destination of the UDP packet itself. kMrc: in
// the destination of an outer IPv6 header. kAuto: kCarrier if every link is the lab's, otherwise
// kMrc.
enum class Srv6Form : std::uint8_t { kAuto, kCarrier, kMrc };

}  // namespace weft::fabric
