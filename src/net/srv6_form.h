// The place of the uSIDs in the packets of a world, and the addresses that follow from it.
#pragma once

#include <span>

#include "base/result.h"
#include "fabric/address.h"
#include "net/steering.h"

namespace weft::net {

// Chooses the SRv6 form for links with the addresses `planes`. `wanted` is the user's choice, or
// kAuto. In the carrier form the sender computes the UDP checksum for the address of the uSID
// carrier, but the packet arrives with another address. So this form works only on links that never
// verify checksums. Errors: kUnsupported, kSystem.
Result<Srv6Form> choose_srv6_form(Srv6Form wanted, std::span<const Ipv6> planes);

// The destination address of a packet after all switches have removed their uSIDs: only this host's
// uSID is left.
Ipv6 usids_end(const fabric::Topology& topology, const fabric::HostPort& host);

}  // namespace weft::net
