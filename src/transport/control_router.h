// ControlRouter: which port does the next control packet take?
//
// The planes take turns, so that a dead one costs its share of control packets only, unless a packet
// asks for a port (PortChoice, docs/decisions/0028). Planes whose reverse EV is in doubt are left out
// while another works; when all are in doubt all take turns, as one of them may work.
//
// Owned by the endpoint. It decides for one packet after the other within a pass over the control
// queue, and keeps nothing between passes but the turn in each Peer.
#pragma once

#include <cstdint>
#include <optional>

#include "transport/control_queue.h"
#include "transport/peer.h"

namespace weft::transport {

class ControlRouter {
 public:
  struct Options {
    std::uint32_t port_count = 1;
    // Packets to one peer that follow each other share a port, where each run costs its sender time.
    bool shares_port = false;
  };
  struct Ports {
    PortMask up = 0;
    PortMask with_room = 0;  // of those
  };
  enum class Verdict : std::uint8_t {
    kSend,  // on `port`
    kWait,  // no port that it may take has room
    kDrop,  // no port can take it: its sender's timers send it again
  };
  struct Decision {
    Verdict verdict = Verdict::kWait;
    PortIndex port = 0;
  };

  explicit ControlRouter(const Options& options) : options_(options) {}

  // A pass over the control queue begins.
  void begin_pass() {
    shared_.reset();
    copied_on_.reset();
  }
  // REQUIRES that `peer` is the packet's; it is null only for a packet to an address, with a port
  // of its own.
  Decision decide(const ControlPacket& packet, Peer* peer, Ports ports) const;
  // The packet that was last decided on left by this port.
  void on_sent(const ControlPacket& packet, PortIndex port);

 private:
  std::optional<PortIndex> preferred(const ControlPacket& packet, const Peer& peer) const;
  std::optional<PortIndex> next_good(Peer& peer, PortMask with_room) const;
  std::optional<PortIndex> next_in_doubt(Peer& peer, Ports ports) const;
  PortIndex after(PortIndex port) const {
    return static_cast<PortIndex>(port + 1u == options_.port_count ? 0 : port + 1);
  }

  struct Shared {
    std::uint32_t peer = 0;
    PortIndex port = 0;
  };
  Options options_;
  std::optional<Shared> shared_;        // what packets in turn to that peer take, too
  std::optional<PortIndex> copied_on_;  // the port of the packet whose copy may follow
};

}  // namespace weft::transport
