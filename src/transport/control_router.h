// ControlRouter: which port does the next control packet take?
//
// The planes take turns, so that a dead plane loses only its share of control packets. A packet may
// ask for a port instead (PortChoice, docs/decisions/0028). Planes whose reverse EV is in doubt are
// left out while another works; when all are in doubt all take turns, since any of them may work.
//
// Owned by the endpoint. It decides packet by packet within a pass over the control queue. Between
// passes only the turn, which is in each Peer, is kept.
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
    // Consecutive packets to one peer share a port, in worlds in which each system call costs time.
    bool shares_port = false;
  };
  struct Ports {
    PortMask up = 0;
    PortMask with_room = 0;  // ports of `up` that have room
  };
  enum class Verdict : std::uint8_t {
    kSend,  // on `port`
    kWait,  // no allowed port has room
    kDrop,  // no port can take the packet: timers of its sender repeat it
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
  // REQUIRES that `peer` is the packet's peer. It is null only for a packet that goes to an address
  // on a given port.
  Decision decide(const ControlPacket& packet, Peer* peer, Ports ports) const;
  // The packet of the last decide() left on this port.
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
  std::optional<Shared> shared_;        // port that the next packets to this peer share
  std::optional<PortIndex> copied_on_;  // the port of the previous packet, which its copy avoids
};

}  // namespace weft::transport
