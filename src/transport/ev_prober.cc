#include "transport/ev_prober.h"

#include <algorithm>

namespace weft::transport {

EvProber::EvProber(std::uint32_t watched_max) : watched_max_(watched_max) {
  watches_.reserve(watched_max);
}

EvProber::Watch* EvProber::find(std::uint32_t peer, fabric::Ev ev) {
  for (Watch& w : watches_) {
    if (w.peer == peer && w.ev == ev) return &w;
  }
  return nullptr;
}

bool EvProber::watch(Time now, std::uint32_t peer, fabric::Ev ev, bool plane) {
  Watch* w = find(peer, ev);
  if (w == nullptr) {
    if (watches_.size() < watched_max_) {
      w = &watches_.emplace_back();
    } else {
      // A revived EV's watch is kept only for its record. A new watch may take its place.
      auto idle =
          std::find_if(watches_.begin(), watches_.end(), [](const Watch& x) { return !x.active; });
      if (idle == watches_.end()) return false;
      w = &*idle;
      *w = {};
    }
    w->peer = peer;
    w->ev = ev;
  } else if (w->active) {
    w->plane = w->plane || plane;
    w->alone = w->alone || !plane;
    return true;
  } else {
    const bool again = now - w->revived_at < Duration::s(1);
    w->needed = static_cast<std::uint8_t>(again ? std::min(2 * w->needed, 12) : 3);
  }
  w->active = true;
  new_ = true;
  w->plane = plane;
  w->alone = !plane;
  w->answers = 0;
  w->under_way = 0;
  w->next_at = now + Duration::ms(1);
  ++active_;
  next_at_ = std::min(next_at_, w->next_at);
  return true;
}

void EvProber::forget_peer(std::uint32_t peer) {
  std::erase_if(watches_, [peer](const Watch& w) { return w.peer == peer; });
  active_ = static_cast<std::uint32_t>(
      std::count_if(watches_.begin(), watches_.end(), [](const Watch& w) { return w.active; }));
  reschedule();
}

const EvProber::Watch* EvProber::on_answer(Time now, std::uint32_t peer, std::uint16_t request_id) {
  for (Watch& w : watches_) {
    if (!w.active || w.peer != peer) continue;
    const auto end = w.probe_ids.begin() + w.under_way;
    const auto question = std::find(w.probe_ids.begin(), end, request_id);
    if (question == end) continue;
    const auto before = static_cast<std::uint8_t>(question - w.probe_ids.begin());
    if (before > 0) w.answers = 0;  // earlier probes were not answered
    forget_probes(w, static_cast<std::uint8_t>(before + 1));
    ++w.answers;
    std::uint32_t answers = w.answers;
    if (w.plane) {
      answers = 0;
      for (const Watch& other : watches_) {
        if (other.active && other.plane && other.peer == peer && other.ev.port == w.ev.port) {
          answers += other.answers;
        }
      }
    }
    if (answers >= w.needed) {
      for (Watch& other : watches_) {
        const bool same_plane = w.plane && other.active && other.plane && other.peer == peer &&
                                other.ev.port == w.ev.port;
        if (&other != &w && !same_plane) continue;
        if (&other != &w && other.alone) {
          other.plane = false;
          continue;
        }
        other.active = false;
        other.revived_at = now;
        WEFT_ASSERT(active_ > 0);
        --active_;
      }
    } else {
      w.next_at = now + Duration::ms(1);
    }
    reschedule();
    return &w;
  }
  return nullptr;
}

// Drops the oldest `count` probes in progress.
void EvProber::forget_probes(Watch& watch, std::uint8_t count) {
  WEFT_ASSERT(count <= watch.under_way);
  std::copy(watch.probe_ids.begin() + count, watch.probe_ids.begin() + watch.under_way,
            watch.probe_ids.begin());
  watch.under_way = static_cast<std::uint8_t>(watch.under_way - count);
}

void EvProber::reschedule() {
  next_at_ = kNever;
  for (const Watch& w : watches_) {
    if (w.active) next_at_ = std::min(next_at_, w.next_at);
  }
}

}  // namespace weft::transport
