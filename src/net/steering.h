// Steering: converts an EV to a path on the real network, and a received packet's fields to its EV.
//
// Three kinds of header fields can carry an EV (fabric/ev_carrier.h). In the lab's form of SRv6
// there is no inner header, so the UDP checksum is computed for the address of the uSID carrier.
// That form is only for links that do not verify checksums (veth).
//
// The source port also identifies the sender's process (docs/decisions/0008). A value; arithmetic
// only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ipv6.h"
#include "base/result.h"
#include "fabric/ev.h"
#include "fabric/ev_carrier.h"
#include "fabric/topology.h"
#include "wire/process_ports.h"

namespace weft::net {

using fabric::EvCarrier;
using fabric::Srv6Form;

// The fabric and this host in it, for steering by uSIDs.
struct FabricPlace {
  fabric::Topology topology;
  fabric::HostIndex self = 0;
};

struct SteeringConfig {
  EvCarrier carrier = EvCarrier::kUdpPort;
  std::uint32_t plane_count = 1;
  std::uint32_t evs_per_plane = 4;
  std::optional<FabricPlace> place{};  // for SRv6
};

class Steering {
 public:
  static constexpr std::uint32_t kEvsPerPlaneMax = 4096;

  // Errors: kInvalid, with a message of one line.
  static Result<Steering> make(const SteeringConfig& config);

  // The number of sending sockets of a plane.
  std::uint32_t sockets() const { return sockets_; }
  // The EVs of a process, the planes in turn.
  std::vector<fabric::Ev> evs(std::uint16_t process) const;

  struct Fields {
    std::uint32_t socket = 0;  // index of the sending socket, below sockets()
    Ipv6 to{};                 // the destination address on the wire
    std::uint32_t flow_label = 0;
  };
  // The header fields that send a packet to `peer` over the path of an EV. An EV that is not ours
  // (echoed by a peer) takes the first socket.
  Fields fields(std::uint16_t process, std::uint32_t plane, std::uint32_t ev,
                const Ipv6& peer) const;

  // The fields of a received packet from which its EV is computed.
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
