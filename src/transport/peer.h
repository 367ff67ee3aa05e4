// Peer: what an endpoint knows of another process: its addresses, which of its ports can be
// reached, and over which EV control packets reach it in each plane (the reverse EVs, which belong
// to the endpoint and not to a QP).
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "transport/config.h"
#include "transport/loss.h"
#include "transport/port_status.h"

namespace weft::transport {

struct alignas(64) Peer {
  static constexpr std::uint32_t kNobody = 0xffff'ffff;

  // The EV that control packets take in one plane. ReverseEvs chooses it.
  struct Reverse {
    std::uint32_t ev = 0;
    bool present = false;          // false: no control packet takes this plane
    std::uint8_t failures = 0;     // probes in a row that were overtaken by answers on other planes
    std::uint16_t request_id = 0;  // of the probe in progress; 0: none
    Time confirmed_at;             // when the newest answer came
    Time probe_began_at;  // when the probe in progress was first sent, or last found to have failed
    Time probe_sent_at;   // when the newest copy of the probe was sent
  };

  // The part that belongs to one plane.
  struct Plane {
    Address address{};
    Reverse reverse{};
  };

  // The memory that the next packet from or to the peer will touch, for prefetching.
  world::Node::Part part(std::uint32_t port_count) const {
    const auto* begin = reinterpret_cast<const char*>(this);
    const auto* end = reinterpret_cast<const char*>(planes.data() + port_count);
    return {.at = begin, .bytes = static_cast<std::uint32_t>(end - begin)};
  }

  std::uint32_t host = kNobody;      // its name in the trace
  std::uint32_t first_qp = kNobody;  // first QP of the peer's list, by index
  PortStatus::OfPeer ports;
  PortIndex turn = 0;    // the plane that takes the next control packet
  PortIndex heard = 0;   // plane on which the peer's last packet for a QP came
  PortMask present = 0;  // ports with a reverse EV
  Time data_at;          // when data was last sent to the peer
  // When the newest reverse EV probe that the peer answered was sent, on any plane.
  Time answered_probe_began_at;
  // Delays of the peer's answers, over all QPs. Kept for software peers only: a busy or distant
  // host answers all QPs late, also those that it has not answered yet.
  DelaySpread answers{};
  std::array<Plane, world::kPortsMax> planes{};

  // A plane is in doubt when this many of its probes in a row were overtaken: the answer to a later
  // probe on another plane came first. A plane in doubt carries no control packets while other
  // planes work. Late answers on all planes put no plane in doubt.
  static constexpr std::uint8_t kFailuresMax = 2;
  // Our ports that are up and from which control packets can reach the peer.
  PortMask usable(PortMask ports_up) const {
    return static_cast<PortMask>(ports_up & ports.reachable & present);
  }
  // True if `port` is one of `ports_up`, can reach the peer, and its reverse EV is not in doubt.
  bool can_carry_control(PortIndex port, PortMask ports_up) const {
    return (usable(ports_up) >> port & 1) != 0 && planes[port].reverse.failures < kFailuresMax;
  }
};

}  // namespace weft::transport
