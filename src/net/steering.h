// Steering: how does an EV become a path on the real network, and which EV did a packet come by?
//
// Three ways (EvMode):
//   UDP port        an EV is a UDP source port; whatever hashes flows gives each its own path
//   port and label  the same, and the IPv6 flow label: more EVs than there are sockets (STEV)
//   SRv6            the destination is the carrier of a uSID list, the EV travels as an index in
//                   the flow label. In the lab's form (Srv6Form) there is no inner header, so the
//                   UDP checksum is that of the carrier: for links that do not verify it (veth)
//
// The process that a packet comes from follows from its source port (docs/decisions/0008). A value;
// arithmetic only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ipv6.h"
#include "base/result.h"
#include "fabric/ev.h"
#include "fabric/topology.h"
#include "wire/process_ports.h"

namespace weft::net {

enum class EvMode : std::uint8_t { kUdpPort, kPortAndLabel, kSrv6 };

// How uSIDs are carried (docs/decisions/0020). Ours, for the lab: the destination of the UDP packet
// itself. MRC's: that of an IPv6 header around it. Auto: ours where every link is the lab's.
enum class Srv6Form : std::uint8_t { kAuto, kCarrier, kMrc };

// Where we are in a fabric that is steered by uSIDs.
struct FabricPlace {
  fabric::Topology topology;
  fabric::HostIndex self = 0;
};

struct SteeringConfig {
  EvMode mode = EvMode::kUdpPort;
  std::uint32_t plane_count = 1;
  std::uint32_t evs_per_plane = 4;
  std::optional<FabricPlace> place{};  // SRv6
};

class Steering {
 public:
  static constexpr std::uint32_t kEvsPerPlaneMax = 4096;

  // Errors: kInvalid, in one line.
  static Result<Steering> make(const SteeringConfig& config);

  // How many sockets a plane sends from.
  std::uint32_t sockets() const { return sockets_; }
  // In an order that interleaves planes.
  std::vector<fabric::Ev> evs(std::uint16_t process) const;

  struct Way {
    std::uint32_t socket = 0;  // below sockets()
    Ipv6 to{};                 // the destination address on the wire
    std::uint32_t flow_label = 0;
  };
  // The way of an EV towards `peer` in a plane. Any EV has one: what is not ours (an echo) goes by
  // the first.
  Way way(std::uint16_t process, std::uint32_t plane, std::uint32_t ev, const Ipv6& peer) const;

  // The EV that a packet came by.
  struct Seen {
    std::uint32_t plane = 0;
    std::uint16_t source_port = 0;
    std::uint32_t flow_label = 0;
  };
  std::uint32_t ev_of(const Seen& seen) const;

 private:
  explicit Steering(const SteeringConfig& config) : config_(config) {}

  SteeringConfig config_;
  std::uint32_t sockets_ = 1;
};

}  // namespace weft::net
