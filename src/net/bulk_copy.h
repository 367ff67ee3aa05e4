// Copies bulk payload between buffers that are in no cache, and finds out which routine is faster
// here.
//
// The cores of two processes may or may not share their last-level cache, and on one machine that
// changes from hour to hour. If they share the cache, plain stores into the ring are twice as fast
// as stores that bypass the caches; if not, half as fast. glibc's memcpy considers neither
// (docs/decisions/0035).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace weft::net {

// For smaller copies use memcpy.
inline constexpr std::size_t kBulkMin = 16u << 10;

enum class CopyRoutine : std::uint8_t { kThroughCaches, kPastCaches };

// Like memcpy, for kBulkMin bytes and more. Stores that the caller makes later become visible after
// the copied bytes.
void copy_bulk(CopyRoutine routine, std::byte* to, const std::byte* from, std::size_t size);

// Chooses the routine by which a process copies into its rings, or out of them. From time to time a
// trial measures the other routine on a few MiB, in up to three turns alternating with the current
// routine, and keeps it if it was faster. The time of a turn is measured from its begin to its end,
// so that a routine which only moves the cost to the peer gains nothing. Pauses in the traffic
// count only up to a bound. After a change the next trial comes soon, so that a wrong change is
// soon undone.
class CopyChoice {
 public:
  // The initial number of bytes between two trials. Writer and reader of a ring have different
  // numbers, so that their trials do not coincide.
  static constexpr std::uint64_t kWriterStay = 16u << 20, kReaderStay = 48u << 20;

  explicit CopyChoice(std::uint64_t first_stay) : stay_(first_stay), stay_min_(first_stay) {}

  CopyRoutine routine() const { return routine_; }
  // To be called regularly. `bytes`: all bytes copied in bulk since the start.
  void look(Time now, std::uint64_t bytes);

 private:
  // The first bytes after a change are not timed: the cache lines of the ring are still where the
  // other routine left them.
  static constexpr std::uint64_t kSettle = 1u << 20, kTimed = 2u << 20;
  static constexpr std::uint64_t kStayMax = 512u << 20;
  static constexpr std::uint8_t kTurns = 3;
  enum class Phase : std::uint8_t { kStay, kTimed, kOtherSettles, kOtherTimed, kSettles };

  std::uint64_t length() const;
  void leave_out_pauses(Time now, std::uint64_t bytes);
  void judge();

  CopyRoutine routine_ = CopyRoutine::kThroughCaches;
  Phase phase_ = Phase::kStay;
  std::uint8_t turns_ = 0;  // turns of this trial that are done
  std::uint64_t stay_, stay_min_;
  double current_cost_ = 0, other_cost_ = 0;  // sums over the turns of this trial, in ps per byte
  Time phase_began_;                          // begin of this phase, moved later by pauses
  std::uint64_t phase_began_bytes_ = 0;
  Time progress_time_;  // when the number of bytes last grew
  std::uint64_t progress_bytes_ = 0;
};

}  // namespace weft::net
