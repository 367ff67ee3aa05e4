// UdpWorldConfig: the network as one process uses it: planes, steering, peers, buffers, and limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ipv6.h"
#include "base/rate.h"
#include "base/result.h"
#include "base/time.h"
#include "net/steering.h"
#include "os/interfaces.h"
#include "os/waiter.h"
#include "wire/icrc.h"
#include "wire/peer_kind.h"

namespace weft::net {

using wire::IcrcCover;
using wire::PeerKind;

struct UdpWorldConfig {
  // Our address in each plane; with SRv6 they follow from `place`.
  std::vector<Ipv6> planes = os::loopback_planes();
  EvCarrier ev_carrier = EvCarrier::kUdpPort;
  std::uint32_t evs_per_plane = 4;
  std::optional<FabricPlace> place{};  // of this host in a fabric steered by SRv6
  Srv6Form srv6 = Srv6Form::kAuto;     // where the uSIDs are in a packet
  std::string network_namespace{};     // a path such as /run/netns/NAME; empty: the process's own
  std::uint32_t mtu = 4096;            // payload of a full packet
  PeerKind peers = PeerKind::kSoftware;
  IcrcCover icrc = IcrcCover::kHeaders;  // must be kFull with PeerKind::kNic
  // The requested socket buffer; UdpWorld::receive_bytes() returns what the kernel granted.
  std::uint32_t receive_buffer_bytes = 4u << 20;
  std::uint32_t send_buffer_bytes = 256u << 10;
  // Time 0 of the world, as a time of the monotonic clock.
  Time epoch{};
  // How long an idle world spins before it sleeps.
  Duration spin = os::kSpin;
  // The same while this host has more busy threads than cores: os::WaiterConfig.
  Duration spin_oversubscribed{};
  // The most payload bits per second over all planes; absent: no limit.
  std::optional<Rate> rate_cap{};
  // The secret that all processes of the job share, at least 32 bytes. Empty: packets are not
  // sealed.
  std::vector<std::byte> job_secret{};
  std::uint32_t secured_qps_max = 1024;
  // Whether processes of this host are also reached over shared memory. It takes a port of its own,
  // so with 8 planes it is off.
  bool shared_memory = true;
  std::size_t ring_bytes = 1u << 20;  // for each direction; a power of two
};

// Returns the configuration that a world uses: planes follow from `place`, other fields from the
// kind of peers. Errors: kInvalid.
Result<UdpWorldConfig> complete_config(UdpWorldConfig config);

// The address at which packets of a plane arrive. In the carrier form of SRv6 it contains the last
// uSID.
Ipv6 listen_address(const UdpWorldConfig& config, std::uint32_t plane);

}  // namespace weft::net
