// PortStatus: which of our ports may be used, and which ports of each peer can be reached.
//
// A port of ours is up when the world says that it has a carrier and the controller has not disabled
// it. A peer is told of a change by a port status update (PSU), which is repeated until the peer
// answers it: every 100 us three times, then every 10 ms. A peer's own updates say which of its
// ports can be reached; a late one must not undo a newer one.
//
// Updates do not cover unlisted ports: shared memory is up while the peer lives. Owned by the
// endpoint, which tells its QPs what changed. The state of a peer is an `OfPeer` inside it; peers
// are named by their index.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "transport/config.h"
#include "transport/control_queue.h"
#include "transport/request_ids.h"

namespace weft::transport {

class PortStatus {
 public:
  struct Options {
    std::uint32_t port_count = 1;
    PortMask unlisted = 0;
  };
  struct OfPeer {
    PortMask reachable = 0xff;  // as the peer's updates say
    // Our update that the peer has not answered yet, if there is one.
    std::uint8_t tries = 0;  // how often it was sent
    std::uint16_t id = 0;    // request id; 0: there is none
    Time resend_at = kNever;
    bool was_updated = false;  // we have sent this peer an update at some time
    // The newest update of the peer that was applied, if there is one.
    bool has_applied = false;
    std::uint16_t applied_id = 0;
    Time applied_at;
  };
  // Ports of a peer that can no longer be reached, or can be again.
  struct Change {
    PortMask lost = 0, back = 0;
  };

  explicit PortStatus(const Options& options);

  // --- our ports
  std::uint32_t count() const { return count_; }
  PortMask up() const { return up_; }
  bool is_up(PortIndex port) const { return (up_ >> port & 1) != 0; }
  bool are_all_up() const { return up_ == all(); }
  bool is_disabled(PortIndex port) const { return (disabled_ >> port & 1) != 0; }
  // The world reports a port's carrier. True: is_up() has changed. REQUIRES port < count().
  bool set_carrier(PortIndex port, bool carrier);
  // The controller disables or enables a port. True: is_up() has changed. REQUIRES port < count().
  bool set_disabled(PortIndex port, bool disabled);

  // --- what a peer is told
  // Sends the peer an update, and repeats it until the peer answers. It replaces an older one.
  void start_update(Time now, std::uint32_t index, OfPeer& peer, RequestIds& ids,
                    ControlQueue& out);
  // When the next unanswered update is due.
  Time resend_at() const { return resend_at_; }
  // Begins a round over the peers with QPs: pass each to resend_if_due().
  void begin_resend_round() { resend_at_ = kNever; }
  void resend_if_due(Time now, std::uint32_t index, OfPeer& peer, ControlQueue& out);
  // True: the packet answers our update.
  bool on_answer(OfPeer& peer, std::uint16_t id);
  std::uint64_t updates_sent() const { return updates_sent_; }

  // --- what a peer tells us
  // Applies the peer's update: `status` as on the wire, which counts ports from 1. An update that is
  // older than one already applied changes nothing.
  Change on_update(Time now, OfPeer& peer, std::uint16_t id, std::uint32_t status);

 private:
  PortMask all() const { return static_cast<PortMask>((1u << count_) - 1); }
  bool refresh();
  void send(Time now, std::uint32_t index, OfPeer& peer, ControlQueue& out);

  PortMask up_, carrier_, disabled_ = 0;
  PortMask unlisted_;
  std::uint32_t count_;
  Time resend_at_ = kNever;
  std::uint64_t updates_sent_ = 0;
};

}  // namespace weft::transport
