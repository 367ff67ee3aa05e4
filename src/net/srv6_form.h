// The form of uSIDs that a world uses, and the addresses that follow from it.
#pragma once

#include <span>

#include "base/result.h"
#include "fabric/address.h"
#include "net/steering.h"

namespace weft::net {

// The form for links with these addresses; `wanted` is kAuto, or the form that the user names. In
// the carrier form the UDP checksum is computed for the carrier address, and the packet arrives
// with another address. So it only works on links that never verify checksums. Errors:
// kUnsupported, kSystem.
Result<Srv6Form> choose_srv6_form(Srv6Form wanted, std::span<const Ipv6> planes);

// The address that is left of a uSID list to this host when the packet arrives: its last uSID.
Ipv6 usids_end(const fabric::Topology& topology, const fabric::HostPort& host);

}  // namespace weft::net
