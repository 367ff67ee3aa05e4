// PathSet: chooses the EV of the next packet, and judges which EVs are bad.
//
// Holds a QP's EVs, some in rotation and some as backups, grouped by port (plane). Planes take
// turns, so they carry equal shares; inside a plane every cycle goes through the EVs in a fresh
// random order. An EV marked by ECN or a trim misses one turn (kSkip). An EV that loses more than
// the QP's other EVs is condemned (kAssumedBad): see evidence.h. A backup of the same plane takes
// its place, until probes show that the EV works again.
//
// Owned by one requestor; at most 65,535 EVs; memory taken at construction.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/assert.h"
#include "base/prng.h"
#include "base/time.h"
#include "base/trace.h"
#include "fabric/ev.h"
#include "transport/config.h"
#include "transport/ev_journal.h"

namespace weft::transport {

enum class EvState : std::uint8_t { kGood, kSkip, kAssumedBad, kDenied };

// What a loss leads to.
enum class Verdict : std::uint8_t { kNothing, kEvCondemned, kPlaneCondemned };

class PathSet {
 public:
  using Slot = std::uint16_t;
  static constexpr Slot kNone = 0xffff;

  struct Options {
    Policy policy = Policy::kMrc;
    Condemn condemn = Condemn::kRelative;
    std::uint32_t active = 128;     // in rotation, over all planes
    std::uint32_t min_active = 32;  // ev_min_active
    std::uint32_t port_count = 1;
    // PeerRules::prior_losses.
    std::uint32_t prior_losses = 0;
    // PeerRules::loss_confirmation. Losses of a plane do not count against its EVs before they have
    // gone on for this long, or for as long as packets are late. A software peer reads one port
    // after the other, so some packets only seem lost, and a plane that stands still for a moment
    // is not dead. 0: losses count at once.
    Duration confirm{};
    std::uint64_t seed = 1;
    // For the trace; null: none.
    Trace* trace = nullptr;
    EvJournal* journal = nullptr;  // for a controller; null: none. Outlives the path set
    std::uint32_t host = 0, qpn = 0;
  };
  // REQUIRES !evs.empty().
  PathSet(const Options& options, std::span<const fabric::Ev> evs);

  // The EV for the next burst, on one of the `usable` ports. kNone when none of those ports has an
  // EV that may carry data. `rtt`: an EV that only ev_min_active keeps in rotation gets one packet
  // in that time.
  Slot next(Time now, PortMask usable, Duration rtt);

  // REQUIRES here and below: a slot of this set.
  fabric::Ev ev(Slot slot) const {
    WEFT_ASSERT(slot < slot_count_);
    return {.value = slots_[slot].value, .port = slots_[slot].port};
  }
  EvState state(Slot slot) const { return slots_[slot].state; }
  bool is_condemned(Slot slot) const {
    return slots_[slot].state == EvState::kAssumedBad || slots_[slot].floor;
  }
  // The slot that holds this EV, or kNone.
  Slot find(fabric::Ev ev) const;
  // The slot of an echoed EV value. kNone if no slot has the value, or several on different ports
  // have it (STEV values do not contain the plane).
  Slot find_echo(std::uint32_t value) const;
  // Any EV of that port, in rotation if possible; kNone if there is none. For probes and control
  // packets. `draw` is the random number that picks it.
  Slot any_on(PortIndex port, std::uint32_t draw) const;
  // True if an EV of these ports is in rotation.
  bool any_in_rotation(PortMask ports) const;

  // A packet on this EV was marked CE, or trimmed in the core: the EV misses one turn.
  void on_mark(Slot slot);
  // A packet whose newest copy was sent on this EV has arrived.
  void on_ack(Slot slot);
  // The same, and its SACK carried no mark: the REPS policy remembers the EV.
  void on_clean_echo(Slot slot);
  // A packet sent on this EV was declared lost. `late`: how late the packets are that arrive.
  Verdict on_loss(Time now, Slot slot, Duration late = {});
  // A packet that was declared lost on this EV arrived after all: the loss is withdrawn. True if
  // that brought the EV back into use.
  bool on_lost_packet_arrived(Time now, Slot slot);
  // Condemns the EV: the responder asked for that (ALWAYS_SKIP), or another QP to the same peer
  // condemned it. True if the EV was not condemned before.
  bool condemn(Time now, Slot slot);
  // Another QP to the same peer found the whole plane dead. False if that was known, or no other
  // plane is left.
  bool condemn_plane(Time now, PortIndex port);
  // Probes show that the EV works again.
  void revive(Time now, Slot slot);
  void revive_plane(Time now, PortIndex port);
  void deny(Time now, Slot slot, bool denied);

  // A random number, for other uses of this QP.
  std::uint32_t draw() { return static_cast<std::uint32_t>(prng_.next() >> 32); }

  // The end of the part of this object that is in use: planes_ is used up to port_count.
  const void* end() const { return &planes_[options_.port_count - 1] + 1; }
  // The memory of the EV that next() will look at first, for prefetching.
  world::Node::Part prefetch() const {
    const Slot slot = planes_[turn_].drawn;
    return slot == kNone ? world::Node::Part() : world::Node::Part{&slots_[slot], sizeof(EvSlot)};
  }

  PortMask planes_down() const { return planes_down_; }
  std::uint32_t active() const { return active_; }          // in rotation on living planes
  std::uint32_t active_min() const { return active_min_; }  // the lowest active() so far
  std::uint32_t bad() const;  // condemned EVs, and all EVs of condemned planes
  std::uint32_t size() const { return slot_count_; }
  std::size_t bytes() const { return slot_count_ * (sizeof(EvSlot) + sizeof(Slot)); }

 private:
  struct EvSlot {
    std::uint32_t value = 0;
    std::uint32_t history = 0;  // its last 32 packets, newest in bit 0; 1: lost
    std::uint8_t port = 0;
    EvState state : 4 = EvState::kGood;
    bool rotating : 1 = false;       // in rotation: in the first part of its plane's order_
    bool floor : 1 = false;          // condemned, but kept in rotation because too few are left
    std::uint8_t losses_in_row = 0;  // losses since the last packet that arrived
  };
  static constexpr Time kLongAgo = Time::from_start(Duration::s(-1'000'000));
  struct Plane {
    std::uint32_t begin = 0;  // where the plane's part of order_ begins
    std::uint16_t size = 0;   // EVs of the plane
    std::uint16_t count = 0;  // EVs in rotation: order_[begin .. begin + count)
    std::uint16_t nominal = 0;
    std::uint16_t cursor = 0;
    Slot drawn = kNone;               // order_[begin + cursor], if it was drawn ahead of its use
    std::uint16_t losses_in_row = 0;  // losses since the last packet that arrived
    std::uint32_t acks_before = 0;    // acks_ when losses_in_row began
    Time loss_first, loss_last = kLongAgo;  // first and last loss of a series without a long pause
  };

  bool confirm_losses(Time now, Plane& plane, Duration late) const;
  Slot next_in_plane(Time now, Plane& plane, Duration rtt);
  Slot draw_ahead(Plane& plane);
  Slot next_reps(PortMask usable);
  void set_history(EvSlot& s, std::uint32_t history);
  std::uint32_t ambient_q16(const EvSlot& without) const;
  std::uint32_t position_of(const Plane& plane, Slot slot) const;
  bool demote(Time now, Slot slot);
  bool plane_is_dead(const Plane& plane, std::uint32_t losses_needed) const;
  bool may_lose_plane(PortIndex port) const;
  void set_state(Time now, EvSlot& s, EvState state);
  void trace_state(Time now, const EvSlot& s, EvState state) const;
  void count_active();

  Options options_;
  std::unique_ptr<EvSlot[]> slots_;
  std::unique_ptr<Slot[]> order_;
  std::uint32_t slot_count_ = 0;
  std::uint32_t active_ = 0, active_min_ = 0;
  std::uint32_t rotation_losses_ = 0;  // set bits in the histories of all EVs in rotation
  std::uint32_t rotation_count_ = 0;
  std::uint32_t acks_ = 0;  // packets that arrived; wraps
  bool any_lost_ = false;   // a packet was lost once: from then on arrivals are recorded
  PortMask planes_down_ = 0;
  PortIndex turn_ = 0;  // the plane whose turn it is
  Time kept_ev_next_at_;
  Prng prng_;
  std::array<Slot, 8> clean_{};  // REPS: EVs whose last packet was not marked
  std::uint8_t clean_count_ = 0, clean_head_ = 0;
  std::array<Plane, world::kPortsMax>
      planes_{};  // last member: only the first port_count are ever touched
};

}  // namespace weft::transport
