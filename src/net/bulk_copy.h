// How bulk payload is copied between memories that no cache holds, and which way is faster here.
//
// Two processes' cores may share their last cache or not, and on one machine that changes from hour
// to hour. If they do, plain stores into the ring are twice as fast as stores past the caches; if
// they do not, half as fast. glibc's memcpy knows neither (decision 35).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace weft::net {

// Below that, a copy is memcpy's.
inline constexpr std::size_t kBulkMin = 16u << 10;

enum class CopyWay : std::uint8_t { kThroughCaches, kPastCaches };

// As memcpy, for kBulkMin bytes and more. What is stored afterwards is seen afterwards, as always.
void copy_bulk(CopyWay way, std::byte* to, const std::byte* from, std::size_t size);

// Which way a process copies into its rings, or out of them: now and then the other way is tried
// for a few MiB, in up to three turns with ours, and stays if it was faster. Time counts from end
// to end, so that a way which only moves the cost to the other end gains nothing; of a pause, in
// which nothing was to be copied, a moment counts. Who just changed looks again soon: what was
// chance is put right.
class CopyChoice {
 public:
  // Two ends of one ring begin with different stays: what one of them tries is not to be the
  // other's gain.
  static constexpr std::uint64_t kWriterStay = 16u << 20, kReaderStay = 48u << 20;

  explicit CopyChoice(std::uint64_t first_stay) : stay_(first_stay), stay_min_(first_stay) {}

  CopyWay way() const { return way_; }
  // Now and then: `bytes` were copied in bulk since the beginning.
  void look(Time now, std::uint64_t bytes);

 private:
  // What comes first after a change is not timed: the ring's lines still lie where the other way
  // put them.
  static constexpr std::uint64_t kSettle = 1u << 20, kTimed = 2u << 20;
  static constexpr std::uint64_t kStayMax = 512u << 20;
  static constexpr std::uint8_t kTurns = 3;
  enum class Phase : std::uint8_t { kStay, kTimed, kOtherSettles, kOtherTimed, kSettles };

  std::uint64_t length() const;
  void leave_out_pauses(Time now, std::uint64_t bytes);
  void judge();

  CopyWay way_ = CopyWay::kThroughCaches;
  Phase phase_ = Phase::kStay;
  std::uint8_t turns_ = 0;  // of this trial
  std::uint64_t stay_, stay_min_;
  double ours_ = 0, theirs_ = 0;  // ps a byte of this trial's turns, added up
  Time began_;                    // of the phase; later by its pauses
  std::uint64_t began_at_ = 0;
  Time looked_;  // when bytes had last become more
  std::uint64_t looked_at_ = 0;
};

}  // namespace weft::net
