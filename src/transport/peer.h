// Peer: what an endpoint knows of another host: its addresses, which of its ports live, and over
// which EV control packets reach it in each plane (reverse EVs: they belong to the endpoint, not to
// a QP).
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "transport/config.h"
#include "transport/loss.h"

namespace weft::transport {

struct alignas(64) Peer {
  static constexpr std::uint32_t kNobody = 0xffff'ffff;

  // A reverse EV: confirmed by an answered probe.
  struct Reverse {
    std::uint32_t ev = 0;
    bool present = false;
    std::uint8_t failures = 0;     // answers that came on others instead, in a row
    std::uint16_t request_id = 0;  // of the question under way; 0: none
    // `open_at`: since when the question is open, or was last found to have failed. `asked_at`: its
    // last copy.
    Time confirmed_at, open_at, asked_at;
  };

  // What belongs to one plane.
  struct Way {
    Address address{};
    Reverse reverse{};
  };

  // What the next packet from or to it will touch.
  world::Node::Part part(std::uint32_t port_count) const {
    const auto* begin = reinterpret_cast<const char*>(this);
    const auto* end = reinterpret_cast<const char*>(ways.data() + port_count);
    return {.at = begin, .bytes = static_cast<std::uint32_t>(end - begin)};
  }

  std::uint32_t host = kNobody;      // its name in the trace
  std::uint32_t first_qp = kNobody;  // head of the list of QPs to it (index of the QP)
  PortMask reachable = 0xff;         // as its port status updates say
  PortIndex turn = 0;                // the plane that takes the next control packet
  PortIndex heard = 0;               // the plane on which the last packet of a QP came
  // A port status update of ours that it has not answered yet.
  std::uint16_t update_id = 0;
  std::uint8_t update_tries = 0;
  bool told = false;  // it ever got a port status update
  // The newest port status update of its own that was applied: a late one must not undo it.
  bool update_seen = false;
  std::uint16_t update_seen_id = 0;
  Time update_seen_at;
  PortMask present = 0;  // ports with a reverse EV
  Time update_next = kNever;
  Time data_at;  // when it was last sent data
  // When the newest question was put that it answered, on whichever plane.
  Time answered_open_at;
  // How long its answers take, over all QPs. Kept for software ends only: a host that is busy, or
  // far away, answers all of them late, also those that have not heard from it yet.
  DelaySpread answers{};
  std::array<Way, world::kPortsMax> ways{};

  // Twice the answer to a question put later on another plane came first: this plane's reverse
  // direction is left out while others work. That all answers come late says nothing of a plane.
  static constexpr std::uint8_t kFailuresMax = 2;
  // Ports of ours over which control packets can reach it at all.
  PortMask usable(PortMask ports_up) const {
    return static_cast<PortMask>(ports_up & reachable & present);
  }
  // A control packet may take this port of those, and its way back is not in doubt.
  bool is_good(std::uint8_t port, PortMask ports_up) const {
    return port < world::kPortsMax && (usable(ports_up) >> port & 1) != 0 &&
           ways[port].reverse.failures < kFailuresMax;
  }
};

}  // namespace weft::transport
