// PathPayload: the largest payload of packets from this process to a peer. known() uses what this
// host knows from its links and from routers' reports; probed() also sends probes over the paths
// (path_mtu.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ipv6.h"
#include "net/steering.h"
#include "world/world.h"

namespace weft::net {

// The properties of this process that limit its packet size.
struct PathPayloadConfig {
  std::string network_namespace{};
  std::vector<Ipv6> planes{};  // our address in each plane
  std::uint16_t process = 0;
  bool uses_usids = false;    // SRv6 headers steer the packets
  bool encapsulates = false;  // packets have an outer IPv6 header
  bool is_sealed = false;     // packets are sealed
};

class PathPayload {
 public:
  // `steering` outlives this object.
  PathPayload(const PathPayloadConfig& config, const Steering& steering)
      : config_(config), steering_(&steering) {}

  // The largest of the payloads 1024, 2048 and 4096 whose packets fit the paths to a peer. `peer`
  // has its address in each plane. 0: none fits.
  std::uint32_t known_payload(std::span<const world::Address> peer) const;
  // As known(), but also probes the paths, which takes up to half a second.
  std::uint32_t probe_payload(std::span<const world::Address> peer) const;

 private:
  PathPayloadConfig config_;
  const Steering* steering_;
};

}  // namespace weft::net
