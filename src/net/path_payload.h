// How large packets from this process to a peer may be: as this host knows it from its own links
// and from what routers reported, and as the paths themselves report (path_mtu.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ipv6.h"
#include "net/steering.h"
#include "world/world.h"

namespace weft::net {

// This process, as far as the size of its packets goes.
struct PathPayloadConfig {
  std::string network_namespace{};
  std::vector<Ipv6> planes{};  // our address in each
  std::uint16_t process = 0;
  bool uses_usids = false;    // paths by SRv6
  bool encapsulates = false;  // packets have an outer IPv6 header
  bool is_sealed = false;     // packets are sealed
};

class PathPayload {
 public:
  // `steering` outlives it.
  PathPayload(const PathPayloadConfig& config, const Steering& steering)
      : config_(config), steering_(&steering) {}

  // The largest payload of 1024, 2048 and 4096 whose packets fit the paths to that peer, by its
  // address in each plane. 0: none fits.
  std::uint32_t known(std::span<const world::Address> peer) const;
  // The same, and the paths are probed too, which takes up to half a second.
  std::uint32_t probed(std::span<const world::Address> peer) const;

 private:
  PathPayloadConfig config_;
  const Steering* steering_;
};

}  // namespace weft::net
