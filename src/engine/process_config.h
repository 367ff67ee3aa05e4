// The configuration of a process on the real network, composed in one place: the world that its
// settings mean, an endpoint in that world, and QPs over planes or over a shared memory ring.
// Everything that opens a UdpWorld takes its numbers from here: NetRdma, the device, probes, labs.
//
// Values in, values out; only world_config() reads the system (interfaces, the secret's file).
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "base/result.h"
#include "fabric/ev.h"
#include "net/udp_world.h"
#include "settings/net_settings.h"
#include "transport/config.h"

namespace weft::engine {

// The world for these settings; reads the job secret's file. Errors: kInvalid, kSystem.
Result<net::UdpWorldConfig> world_config(const settings::NetSettings& settings);

// Bounds that the caller chooses; everything else follows from the world.
struct EndpointBounds {
  std::uint32_t mtu = 4096;
  std::uint32_t burst = 15;
  std::uint32_t qps_max = 16;
  std::uint32_t evs_max = 64;          // over all QPs
  std::uint32_t psn_blocks_max = 256;  // of 64 PSNs each, over all QPs
  std::uint32_t send_queue_max = 16;   // of a QP that sets none
  std::uint32_t completions_max = 64;
  std::uint32_t control_queue_max = 1024;
};
// Draws the first QPN and the endpoint's seed from `prng`.
transport::EndpointConfig endpoint_config(const net::UdpWorld& world, const EndpointBounds& bounds,
                                          Prng& prng);

// Congestion control over planes before a controller changes it. Its rate is an upper bound of what
// one core can send; NSCC finds the rate of slower links by their delay and loss.
transport::NsccConfig plane_congestion();

// A QP over planes to a peer of that kind. `evs` is not copied and must outlive the result.
transport::QpConfig plane_config(std::span<const fabric::Ev> evs, transport::PeerKind peer);

// Turns the configuration of a QP over planes into one over a ring of shared memory
// (docs/decisions/0009). A ring does not lose or reorder packets, and a full ring stops the sender:
// so packets are large, SACKs few, and the window holds several rings. The caller keeps `ring`.
void use_shared_memory(const fabric::Ev& ring, transport::QpConfig& config);

}  // namespace weft::engine
