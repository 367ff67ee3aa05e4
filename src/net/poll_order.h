// PollOrder: what a world polls next, and how much it asks for.
//
// Traffic that came from a ring or a plane probably goes on there. Polling a ring costs less than
// reading the clock, and polling one socket less than polling all, which costs more than a whole
// round trip over a ring. So whatever was busy a moment ago is polled alone, and everything from
// time to time. Arithmetic on the times that are given.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace weft::net {

class PollOrder {
 public:
  // Runs received from one socket in a row; then the other sockets have their turn.
  static constexpr std::size_t kRunsMax = 8;
  // The same when several sockets are readable. It is smaller, because a packet that waits at one
  // socket while others are read is soon declared lost.
  static constexpr std::size_t kRunsWhenMany = 2;
  // Everything is polled at least this often, however busy a ring or a plane is.
  static constexpr Duration kAllEvery = Duration::us(20);

  // --- what happened
  void note_ring(Time now) { ring_busy_until_ = now + kBusy; }
  // The first of the runs that a plane gave in one system call.
  struct Runs {
    std::size_t count = 0;
    std::uint32_t size = 0, segment = 0;  // of the first
    bool answers = false;                 // SACKs and other control packets, not data
  };
  void note_plane(Time now, std::uint32_t plane, const Runs& runs) {
    const std::uint32_t single = runs.answers ? 2 : 1;  // a SACK and its Transport ACK
    runs_max_ = runs.count == 1 && runs.size <= single * runs.segment ? 1
                : runs.size >= kLongRun                               ? kRunsWhenLong
                                                                      : kRunsMax;
    // More data is likely to follow on the same plane. Answers arrive on all planes in turn, so
    // they predict nothing.
    if (runs.answers) return;
    busy_plane_ = plane;
    plane_busy_until_ = now + kBusy;
  }
  // The node was polled, and gave packets or none.
  enum class Sent : std::uint8_t { kNothing, kPackets };
  void note_transmit(Sent sent) { has_sent_ = sent == Sent::kPackets; }
  void note_all_polled(Time now) { all_polled_at_ = now; }

  // --- what is next
  // Whether the busy plane may be polled alone. Not right after a send, when the answer cannot be
  // here yet: that is the time to poll all sockets.
  bool is_plane_busy(Time now) const { return !has_sent_ && now < plane_busy_until_; }
  std::uint32_t busy_plane() const { return busy_plane_; }
  // How many runs to ask for. If single runs arrived last time, asking for more would cost a second
  // system call.
  std::size_t runs_max() const { return runs_max_; }
  // Whether all sockets have to be polled, however busy a ring or a plane is.
  bool is_poll_of_all_due(Time now) const { return now >= all_polled_at_ + kAllEvery; }
  // Whether a ring, or the plane if it was polled alone, is busy, so that the other sockets may wait
  // until then.
  bool may_others_wait(Time now, bool plane_was_polled) const {
    return now < ring_busy_until_ || (plane_was_polled && now < all_polled_at_ + kAllEveryOfPlane);
  }

 private:
  // The same for long runs, so that they are still in the cache when they are placed.
  static constexpr std::size_t kRunsWhenLong = 2;
  static constexpr std::uint32_t kLongRun = 32u << 10;
  // A ring or plane that moved within this time counts as busy.
  static constexpr Duration kBusy = Duration::us(20);
  // The same while a plane is busy but empty: its packets may arrive on another.
  static constexpr Duration kAllEveryOfPlane = Duration::us(6);

  Time ring_busy_until_, plane_busy_until_, all_polled_at_;
  std::uint32_t busy_plane_ = 0;
  std::size_t runs_max_ = kRunsMax;
  bool has_sent_ = false;
};

}  // namespace weft::net
