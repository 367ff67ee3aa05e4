// PollOrder: which ring or socket a world polls next, and how many runs it asks for.
//
// Traffic that came from a ring or a plane probably continues there. Polling a ring costs less than
// reading the clock. Polling one socket costs less than polling all, which costs more than a round
// trip over a ring. So a ring or plane that was busy a moment ago is polled alone, and all of them
// from time to time. Reads no clock: times are arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace weft::net {

class PollOrder {
 public:
  // The most runs received from one socket in a row, before the other sockets are read.
  static constexpr std::size_t kRunsMax = 8;
  // kRunsMax when several sockets are readable: smaller, because a packet that waits at one socket
  // while others are read is soon declared lost.
  static constexpr std::size_t kRunsWhenMany = 2;
  // All rings and planes are polled at least this often, however busy one of them is.
  static constexpr Duration kAllEvery = Duration::us(20);

  // --- what happened
  void note_ring(Time now) { ring_busy_until_ = now + kBusy; }
  // The runs that a plane gave in one system call.
  struct Runs {
    std::size_t count = 0;
    std::uint32_t size = 0, segment = 0;  // of the first run
    bool answers = false;                 // control packets such as SACKs, not data
  };
  void note_plane(Time now, std::uint32_t plane, const Runs& runs) {
    const std::uint32_t single = runs.answers ? 2 : 1;  // a SACK and its Transport ACK
    runs_max_ = runs.count == 1 && runs.size <= single * runs.segment ? 1
                : runs.size >= kLongRun                               ? kRunsWhenLong
                                                                      : kRunsMax;
    // More data is likely to follow on the same plane. Control packets arrive on all planes in
    // turn, so they predict nothing.
    if (runs.answers) return;
    busy_plane_ = plane;
    plane_busy_until_ = now + kBusy;
  }
  // Whether the node gave packets when it was polled.
  enum class Sent : std::uint8_t { kNothing, kPackets };
  void note_transmit(Sent sent) { has_sent_ = sent == Sent::kPackets; }
  void note_all_polled(Time now) { all_polled_at_ = now; }

  // --- what is next
  // Whether the busy plane may be polled alone. Right after a send it may not: the answer cannot
  // have arrived yet, so this is the time to poll all sockets.
  bool is_plane_busy(Time now) const { return !has_sent_ && now < plane_busy_until_; }
  std::uint32_t busy_plane() const { return busy_plane_; }
  // The number of runs to ask for. If one short run arrived last time, the number is 1, because
  // asking for more would cost a second system call.
  std::size_t runs_max() const { return runs_max_; }
  // Whether all sockets have to be polled, however busy a ring or a plane is.
  bool is_poll_of_all_due(Time now) const { return now >= all_polled_at_ + kAllEvery; }
  // Whether the sockets that were not polled may wait: a ring is busy, or the plane that was polled
  // alone.
  bool may_others_wait(Time now, bool plane_was_polled) const {
    return now < ring_busy_until_ || (plane_was_polled && now < all_polled_at_ + kAllEveryOfPlane);
  }

 private:
  // kRunsMax when runs are long: fewer, so that they are still in the cache when they are placed.
  static constexpr std::size_t kRunsWhenLong = 2;
  static constexpr std::uint32_t kLongRun = 32u << 10;
  // A ring or plane that gave packets within this time counts as busy.
  static constexpr Duration kBusy = Duration::us(20);
  // kAllEvery while the busy plane is empty: its packets may arrive on another plane.
  static constexpr Duration kAllEveryOfPlane = Duration::us(6);

  Time ring_busy_until_, plane_busy_until_, all_polled_at_;
  std::uint32_t busy_plane_ = 0;
  std::size_t runs_max_ = kRunsMax;
  bool has_sent_ = false;
};

}  // namespace weft::net
