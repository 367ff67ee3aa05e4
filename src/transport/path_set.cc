#include "transport/path_set.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "transport/evidence.h"
#include "transport/loss.h"

namespace weft::transport {

PathSet::PathSet(const Options& options, std::span<const fabric::Ev> evs)
    : options_(options),
      slots_(std::make_unique<EvSlot[]>(evs.size())),
      order_(std::make_unique<Slot[]>(evs.size())),
      slot_count_(static_cast<std::uint32_t>(evs.size())),
      prng_(options.seed) {
  WEFT_ASSERT(!evs.empty() && evs.size() < kNone);
  WEFT_ASSERT(options.port_count >= 1 && options.port_count <= world::kPortsMax);
  // A QP may have no EV on some ports of its host.
  PortMask present = 0;
  for (const fabric::Ev& ev : evs) present = static_cast<PortMask>(present | 1u << ev.port);
  const auto plane_count = static_cast<std::uint32_t>(std::popcount(present));
  std::uint32_t begin = 0;
  for (std::uint32_t port = 0; port < options_.port_count; ++port) {
    Plane& plane = planes_[port];
    plane.begin = begin;
    for (std::size_t i = 0; i < evs.size(); ++i) {
      if (evs[i].port != port) continue;
      EvSlot& s = slots_[i];
      s.value = evs[i].value;
      s.port = evs[i].port;
      order_[plane.begin + plane.size++] = static_cast<Slot>(i);
    }
    begin += plane.size;
    const std::uint32_t share = std::max(options_.active / plane_count, 1u);
    plane.nominal = static_cast<std::uint16_t>(std::min<std::uint32_t>(share, plane.size));
    plane.count = plane.nominal;
    for (std::uint32_t i = 0; i < plane.count; ++i) slots_[order_[plane.begin + i]].rotating = true;
    rotation_count_ += plane.count;
  }
  WEFT_ASSERT(begin == evs.size());
  turn_ = static_cast<PortIndex>(prng_.below(options_.port_count));
  count_active();
  active_min_ = active_;
}

PathSet::Slot PathSet::next(Time now, PortMask usable, Duration rtt) {
  if (options_.policy == Policy::kFlowHash) {
    // One path for the life of the QP, as ECMP on the five-tuple chooses it. The path changes only
    // when the controller denies it.
    Slot slot = 0;
    while (slot < slot_count_ && slots_[slot].state == EvState::kDenied) ++slot;
    return slot < slot_count_ && (usable >> slots_[slot].port & 1) != 0 ? slot : kNone;
  }
  usable = static_cast<PortMask>(usable & ~planes_down_);
  if (options_.policy == Policy::kReps) {
    if (const Slot slot = next_reps(usable); slot != kNone) return slot;
  }
  for (std::uint32_t tried = 0; tried < options_.port_count; ++tried) {
    Plane& plane = planes_[turn_];
    const bool may = (usable >> turn_ & 1) != 0 && plane.count > 0;
    turn_ = static_cast<PortIndex>(turn_ + 1u == options_.port_count ? 0 : turn_ + 1);
    if (!may) continue;
    const Slot slot = next_in_plane(now, plane, rtt);
    draw_ahead(plane);
    if (slot != kNone) return slot;
  }
  return kNone;
}

// One step of a Fisher-Yates shuffle: draws an EV that was not used in this cycle. Drawn one packet
// ahead, so that the EV can be prefetched. REQUIRES plane.count > 0.
PathSet::Slot PathSet::draw_ahead(Plane& plane) {
  WEFT_ASSERT(plane.count > 0 && plane.count <= plane.size);
  if (plane.cursor >= plane.count) plane.cursor = 0;
  if (plane.drawn != kNone) return plane.drawn;
  const std::uint32_t left = plane.count - static_cast<std::uint32_t>(plane.cursor);
  Slot* const order = &order_[plane.begin + plane.cursor];
  if (left > 1) std::swap(order[0], order[prng_.below(left)]);
  return plane.drawn = order[0];
}

PathSet::Slot PathSet::next_in_plane(Time now, Plane& plane, Duration rtt) {
  Slot restored = kNone, floor = kNone;
  // The rest of this cycle and one full cycle: after that each EV was looked at.
  if (plane.cursor >= plane.count) plane.cursor = 0;
  const std::uint32_t steps = 2u * plane.count - plane.cursor;
  for (std::uint32_t walked = 0; walked < steps; ++walked) {
    const Slot slot = draw_ahead(plane);
    ++plane.cursor;
    plane.drawn = kNone;
    EvSlot& s = slots_[slot];
    if (s.floor) {
      if (now >= kept_ev_next_at_) {
        kept_ev_next_at_ = now + rtt;
        return slot;
      }
      floor = slot;
      continue;
    }
    if (s.state == EvState::kGood || options_.policy == Policy::kOblivious) return slot;
    if (restored == kNone) {
      s.state = EvState::kGood;
      restored = slot;
    }
  }
  return restored != kNone ? restored : floor;
}

PathSet::Slot PathSet::next_reps(PortMask usable) {
  while (clean_count_ > 0) {
    const Slot slot = clean_[clean_head_];
    clean_head_ = static_cast<std::uint8_t>((clean_head_ + 1) % clean_.size());
    --clean_count_;
    const EvSlot& s = slots_[slot];
    if ((usable >> s.port & 1) != 0 && s.rotating && !s.floor) return slot;
  }
  return kNone;
}

// The index of a slot in its plane's part of order_. A linear search is enough: the order changes
// with every packet, and the index is needed only on a fault.
std::uint32_t PathSet::position_of(const Plane& plane, Slot slot) const {
  const Slot* const begin = &order_[plane.begin];
  const Slot* const found = std::find(begin, begin + plane.size, slot);
  WEFT_ASSERT(found != begin + plane.size);
  return static_cast<std::uint32_t>(found - begin);
}

PathSet::Slot PathSet::find(fabric::Ev ev) const {
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    if (slots_[i].value == ev.value && slots_[i].port == ev.port) return static_cast<Slot>(i);
  }
  return kNone;
}

PathSet::Slot PathSet::find_echo(std::uint32_t value) const {
  Slot found = kNone;
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    if (slots_[i].value != value) continue;
    if (found != kNone) return kNone;
    found = static_cast<Slot>(i);
  }
  return found;
}

bool PathSet::any_in_rotation(PortMask ports) const {
  for (PortIndex port = 0; port < options_.port_count; ++port) {
    if ((ports >> port & 1) != 0 && planes_[port].count > 0) return true;
  }
  return false;
}

PathSet::Slot PathSet::any_on(PortIndex port, std::uint32_t draw) const {
  const Plane& plane = planes_[port];
  if (plane.size == 0) return kNone;
  if (plane.count > 0) return order_[plane.begin + draw % plane.count];
  // No EV of this port is in rotation: returns one that may carry data, if there is one.
  for (std::uint32_t i = 0; i < plane.size; ++i) {
    const Slot slot = order_[plane.begin + (draw % plane.size + i) % plane.size];
    if (slots_[slot].state != EvState::kDenied) return slot;
  }
  return kNone;
}

void PathSet::on_mark(Slot slot) {
  WEFT_ASSERT(slot < slot_count_);
  EvSlot& s = slots_[slot];
  if (s.state == EvState::kGood) s.state = EvState::kSkip;
}

void PathSet::set_history(EvSlot& s, std::uint32_t history) {
  if (s.rotating) {
    const auto before = static_cast<std::uint32_t>(std::popcount(s.history));
    WEFT_ASSERT(rotation_losses_ >= before);
    rotation_losses_ += static_cast<std::uint32_t>(std::popcount(history)) - before;
  }
  s.history = history;
}

std::uint32_t PathSet::ambient_q16(const EvSlot& without) const {
  std::uint32_t losses = rotation_losses_ + options_.prior_losses;
  if (without.rotating) losses -= static_cast<std::uint32_t>(std::popcount(without.history));
  const std::uint32_t others = rotation_count_ > 1 ? rotation_count_ - 1 : 1;
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(losses) << 16) / (others * 32ull));
}

void PathSet::on_ack(Slot slot) {
  WEFT_ASSERT(slot < slot_count_);
  ++acks_;
  if (!any_lost_) return;
  EvSlot& s = slots_[slot];
  s.losses_in_row = 0;
  planes_[s.port].losses_in_row = 0;
  if (s.history != 0) set_history(s, s.history << 1);
}

void PathSet::on_clean_echo(Slot slot) {
  if (options_.policy != Policy::kReps || clean_count_ == clean_.size()) return;
  clean_[(clean_head_ + clean_count_++) % clean_.size()] = slot;
}

Verdict PathSet::on_loss(Time now, Slot slot, Duration late) {
  WEFT_ASSERT(slot < slot_count_);
  EvSlot& s = slots_[slot];
  Plane& plane = planes_[s.port];
  any_lost_ = true;
  if (s.losses_in_row < 0xff) ++s.losses_in_row;
  if (plane.losses_in_row == 0) plane.acks_before = acks_;
  if (plane.losses_in_row < 0xffff) ++plane.losses_in_row;
  set_history(s, s.history << 1 | 1);
  if (options_.policy == Policy::kFlowHash || s.state == EvState::kAssumedBad)
    return Verdict::kNothing;
  if (options_.confirm > Duration() && !confirm_losses(now, plane, late)) return Verdict::kNothing;
  const std::uint32_t ambient = ambient_q16(s);
  if (plane_is_dead(plane, plane_losses_in_a_row(ambient))) {
    condemn_plane(now, s.port);
    return Verdict::kPlaneCondemned;
  }
  const bool guilty = options_.condemn == Condemn::kFirstLoss ||
                      s.losses_in_row >= losses_in_a_row(ambient) ||
                      static_cast<std::uint32_t>(std::popcount(s.history)) >= losses_of_32(ambient);
  return guilty && demote(now, slot) ? Verdict::kEvCondemned : Verdict::kNothing;
}

// Called for a loss of a plane. True if the plane's losses have gone on for long enough to count.
bool PathSet::confirm_losses(Time now, Plane& plane, Duration late) const {
  constexpr std::int64_t kPause = 50;  // a pause of this many `confirm` starts the count anew
  if (now - plane.loss_last > options_.confirm * kPause) plane.loss_first = now;
  plane.loss_last = now;
  return now - plane.loss_first >= std::clamp(late, options_.confirm, kLateMax);
}

bool PathSet::plane_is_dead(const Plane& plane, std::uint32_t losses_needed) const {
  if (options_.condemn == Condemn::kFirstLoss || plane.losses_in_row < losses_needed) return false;
  // The other planes deliver meanwhile.
  if (2 * (acks_ - plane.acks_before) < plane.losses_in_row) return false;
  return may_lose_plane(static_cast<PortIndex>(&plane - planes_.data()));
}

// At least one plane must stay in use.
bool PathSet::may_lose_plane(PortIndex port) const {
  if (planes_down_ >> port & 1) return false;
  std::uint32_t living = 0;
  for (std::uint32_t p = 0; p < options_.port_count; ++p) {
    living += (planes_down_ >> p & 1) == 0 && planes_[p].count > 0;
  }
  return living > 1;
}

bool PathSet::on_lost_packet_arrived(Time now, Slot slot) {
  EvSlot& s = slots_[slot];
  set_history(s, s.history & (s.history - 1));
  s.losses_in_row = 0;
  planes_[s.port].losses_in_row = 0;
  planes_[s.port].loss_last = kLongAgo;
  if (s.state != EvState::kAssumedBad && !s.floor) return false;
  revive(now, slot);
  return true;
}

bool PathSet::condemn(Time now, Slot slot) {
  const EvState state = slots_[slot].state;
  return (state == EvState::kGood || state == EvState::kSkip) && demote(now, slot);
}

bool PathSet::condemn_plane(Time now, PortIndex port) {
  if (!may_lose_plane(port)) return false;
  for (std::uint32_t i = 0; i < planes_[port].count; ++i)
    trace_state(now, slots_[order_[planes_[port].begin + i]], EvState::kAssumedBad);
  planes_down_ = static_cast<PortMask>(planes_down_ | 1u << port);
  count_active();
  return true;
}

// Takes an EV out of rotation and puts a backup of the same plane in. Where too few EVs are left,
// the EV stays and gets one packet per RTT. Returns false if nothing changed.
bool PathSet::demote(Time now, Slot slot) {
  EvSlot& s = slots_[slot];
  Plane& plane = planes_[s.port];
  if (s.floor || s.state == EvState::kDenied) return false;
  if (!s.rotating) {
    set_state(now, s, EvState::kAssumedBad);
    return true;
  }
  std::uint32_t backup = plane.count;
  const Slot* const order = &order_[plane.begin];
  while (backup < plane.size && slots_[order[backup]].state > EvState::kSkip) ++backup;
  const bool replaced = backup < plane.size;
  if (!replaced && active_ <= options_.min_active) {
    s.floor = true;
    set_state(now, s, EvState::kSkip);
    return true;
  }
  WEFT_ASSERT(rotation_losses_ >= static_cast<std::uint32_t>(std::popcount(s.history)));
  rotation_losses_ -= static_cast<std::uint32_t>(std::popcount(s.history));
  Slot& place = order_[plane.begin + position_of(plane, slot)];
  if (replaced) {
    EvSlot& in = slots_[order_[plane.begin + backup]];
    rotation_losses_ += static_cast<std::uint32_t>(std::popcount(in.history));
    in.rotating = true;
    std::swap(place, order_[plane.begin + backup]);
  } else {
    WEFT_ASSERT(plane.count > 0 && rotation_count_ > 0);
    std::swap(place, order_[plane.begin + plane.count - 1u]);
    --plane.count;
    --rotation_count_;
  }
  s.rotating = false;
  set_state(now, s, EvState::kAssumedBad);
  count_active();
  return true;
}

void PathSet::revive(Time now, Slot slot) {
  EvSlot& s = slots_[slot];
  if (s.state == EvState::kDenied) return;
  set_history(s, 0);
  s.losses_in_row = 0;
  s.floor = false;
  set_state(now, s, EvState::kGood);
  Plane& plane = planes_[s.port];
  WEFT_ASSERT(s.rotating == (position_of(plane, slot) < plane.count));
  if (!s.rotating && plane.count < plane.nominal) {
    std::swap(order_[plane.begin + position_of(plane, slot)], order_[plane.begin + plane.count]);
    s.rotating = true;
    ++plane.count;
    ++rotation_count_;
  }
  count_active();
}

void PathSet::revive_plane(Time now, PortIndex port) {
  const bool was_down = (planes_down_ >> port & 1) != 0;
  planes_down_ = static_cast<PortMask>(planes_down_ & ~(1u << port));
  planes_[port].losses_in_row = 0;
  for (std::uint32_t i = 0; i < planes_[port].size; ++i) {
    EvSlot& s = slots_[order_[planes_[port].begin + i]];
    set_history(s, 0);
    s.losses_in_row = 0;
    if (was_down) trace_state(now, s, s.state);
  }
  count_active();
}

void PathSet::deny(Time now, Slot slot, bool denied) {
  EvSlot& s = slots_[slot];
  if (!denied) {
    if (s.state == EvState::kDenied) {
      s.state = EvState::kAssumedBad;
      revive(now, slot);
    }
    return;
  }
  if (s.state == EvState::kDenied) return;
  s.floor = false;
  // A denial by the controller overrides ev_min_active.
  const std::uint32_t floor = options_.min_active;
  options_.min_active = 0;
  if (s.state != EvState::kAssumedBad) demote(now, slot);
  options_.min_active = floor;
  set_state(now, s, EvState::kDenied);
}

void PathSet::set_state(Time now, EvSlot& s, EvState state) {
  s.state = state;
  trace_state(now, s, state);
}

void PathSet::trace_state(Time now, const EvSlot& s, EvState state) const {
  if (options_.journal != nullptr && state != EvState::kDenied) {
    options_.journal->note({.qpn = options_.qpn,
                            .ev = {.value = s.value, .port = s.port},
                            .bad = state == EvState::kAssumedBad || s.floor});
  }
  if (options_.trace == nullptr) return;
  TraceRecord record;
  record.at = now;
  record.host = options_.host;
  record.kind = TraceKind::kEv;
  record.qpn = options_.qpn;
  record.ev = s.value;
  record.port = s.port;
  record.a = static_cast<std::uint64_t>(state);
  options_.trace->append(record);
}

// Called after every change of a plane's order or count: the slot that was drawn ahead may no
// longer be valid.
void PathSet::count_active() {
  std::uint32_t active = 0;
  for (std::uint32_t p = 0; p < options_.port_count; ++p) {
    WEFT_ASSERT(planes_[p].count <= planes_[p].size);
    planes_[p].drawn = kNone;
    if ((planes_down_ >> p & 1) == 0) active += planes_[p].count;
  }
  active_ = active;
  active_min_ = std::min(active_min_, active_);
}

std::uint32_t PathSet::bad() const {
  std::uint32_t bad = 0;
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    const EvSlot& s = slots_[i];
    bad += s.state == EvState::kAssumedBad || s.floor ||
           ((planes_down_ >> s.port & 1) != 0 && s.rotating);
  }
  return bad;
}

}  // namespace weft::transport
