// Peer: what an endpoint knows of another host: its addresses, which of its ports can be reached,
// and over which EV control packets reach it in each plane (the reverse EVs, which belong to the
// endpoint and not to a QP).
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

  // The EV of control packets in one plane; ReverseEvs decides.
  struct Reverse {
    std::uint32_t ev = 0;
    bool present = false;          // otherwise no control packet takes this plane
    std::uint8_t failures = 0;     // probes in a row that other planes' answers overtook
    std::uint16_t request_id = 0;  // of the probe under way; 0: none
    Time confirmed_at;             // the newest answer
    Time open_at;   // when the probe under way was first sent, or was last found to have failed
    Time asked_at;  // when the newest copy of the probe was sent
  };

  // What belongs to one plane.
  struct Plane {
    Address address{};
    Reverse reverse{};
  };

  // What the next packet from or to it will touch.
  world::Node::Part part(std::uint32_t port_count) const {
    const auto* begin = reinterpret_cast<const char*>(this);
    const auto* end = reinterpret_cast<const char*>(planes.data() + port_count);
    return {.at = begin, .bytes = static_cast<std::uint32_t>(end - begin)};
  }

  std::uint32_t host = kNobody;      // its name in the trace
  std::uint32_t first_qp = kNobody;  // head of the list of QPs to it (index of the QP)
  PortStatus::OfPeer ports;
  PortIndex turn = 0;    // the plane that takes the next control packet
  PortIndex heard = 0;   // the plane on which the last packet of a QP came
  PortMask present = 0;  // ports with a reverse EV
  Time data_at;          // when it was last sent data
  // When the newest probe of a reverse EV that it answered was sent, on whichever plane.
  Time answered_open_at;
  // How long its answers take, over all QPs. Kept for software ends only: a host that is busy, or
  // far away, answers all of them late, also those that have not heard from it yet.
  DelaySpread answers{};
  std::array<Plane, world::kPortsMax> planes{};

  // So often in a row the answer to a probe that was sent later, on another plane, came first: the
  // reverse direction of this plane is in doubt and left out while others work. When all answers are
  // late, that says nothing about a plane.
  static constexpr std::uint8_t kFailuresMax = 2;
  // Ports of ours over which control packets can reach it at all.
  PortMask usable(PortMask ports_up) const {
    return static_cast<PortMask>(ports_up & ports.reachable & present);
  }
  // A control packet may take this port, one of `ports_up`, and its reverse EV is not in doubt.
  bool is_good(PortIndex port, PortMask ports_up) const {
    return (usable(ports_up) >> port & 1) != 0 && planes[port].reverse.failures < kFailuresMax;
  }
};

}  // namespace weft::transport
