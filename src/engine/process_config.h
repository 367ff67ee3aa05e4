// The configuration of a process on the real network, derived in one place: the world for its
// settings, an endpoint in that world, and QPs over planes or over a shared memory ring. NetRdma, the
// device and the probes of a controller take their numbers from here. Labs take theirs from a
// scenario, and `weft bench write` its world from its flags.
//
// Only world_config() reads the system (interfaces, the file of the job secret). The other
// functions are pure.
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "base/result.h"
#include "fabric/ev.h"
#include "net/udp_world.h"
#include "settings/net_settings.h"
#include "transport/config.h"

namespace weft::engine {

// The configuration of the world for these settings. Reads the file of the job secret. Errors:
// kInvalid, kSystem.
Result<net::UdpWorldConfig> world_config(const settings::NetSettings& settings);

// Bounds that the caller chooses. The rest of the endpoint's configuration follows from the world.
struct EndpointBounds {
  std::uint32_t mtu = 4096;
  std::uint32_t burst = 15;
  std::uint32_t qps_max = 16;
  std::uint32_t evs_max = 64;          // over all QPs
  std::uint32_t psn_blocks_max = 256;  // blocks of 64 PSNs, over all QPs
  std::uint32_t send_queue_max = 16;   // for a QP that does not set its own
  std::uint32_t completions_max = 64;
  std::uint32_t control_queue_max = 1024;
};
// Draws the first QPN and the seed of the endpoint from `prng`.
transport::EndpointConfig endpoint_config(const net::UdpWorld& world, const EndpointBounds& bounds,
                                          Prng& prng);

// The congestion control of a QP over planes, unless a controller changes it. Its rate is an upper
// bound of what one core can send; on slower links NSCC finds the rate by delay and loss.
transport::NsccConfig plane_congestion();

// The configuration of a QP over planes to a peer of this kind. `evs` is not copied and must
// outlive the result.
transport::QpConfig plane_config(std::span<const fabric::Ev> evs, transport::PeerKind peer);

// Changes `config` from a QP over planes to a QP over a shared memory ring (docs/decisions/0009). A
// ring neither loses nor reorders packets, and a full ring stops the sender. So packets are large,
// SACKs few, and the window holds several rings. The caller must keep `ring` alive.
void use_shared_memory(const fabric::Ev& ring, transport::QpConfig& config);

}  // namespace weft::engine
