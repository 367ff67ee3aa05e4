// LossDetector: decides when a packet counts as lost.
//
// A packet is lost when the responder is known to have received a packet that was sent long enough
// after it, and our knowledge of what the responder has is complete (docs/decisions/0002). "Long
// enough" is the reorder window. Paths differ by their queues, so the window follows the spread of
// measured delays. It grows when a loss turns out to be spurious.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.h"
#include "base/time.h"

namespace weft::transport {

// Upper bound on how late a software peer may be and still count as alive: within the 10 ms in
// which a dead plane must be left. Losses of a plane that last longer count, however late packets
// were before, and spurious losses extend the reorder window by at most half of this. The echoed
// times of SACKs (16 bits of 128 ns) reach about as far. Retry timers, the last resort, wait
// longer: RetryTimer::kSlackMax.
inline constexpr Duration kLateMax = Duration::ms(8);

// The largest of the recent samples. Rises at once; falls by a fraction of the difference with each
// smaller sample. Zero, and not known, before the first sample.
template <std::int64_t kPart>
class DecayingMax {
 public:
  void on_delay(Duration delay) {
    if (delay > value_) {
      value_ = delay;
    } else {
      value_ -= (value_ - delay) / kPart;
    }
  }
  Duration value() const { return std::max(value_, Duration()); }
  bool is_known() const { return value_ >= Duration(); }

 private:
  Duration value_ = Duration::ps(-1);  // negative: no sample yet
};

using DelaySpread = DecayingMax<64>;

class LossDetector {
 public:
  // An RTT sample, given as its delay above the base RTT.
  void on_delay(Duration delay) {
    WEFT_ASSERT(delay >= Duration());
    spread_.on_delay(delay);
    extra_ -= extra_ / 1024;
  }
  // A SACK acknowledged packets for the first time. `overtaken_by`: how much later than the oldest
  // of them a packet was sent that had been acknowledged before; zero: none was. After enough of
  // these samples, twice the largest recent one bounds the reorder window.
  void on_order(Duration overtaken_by) {
    WEFT_ASSERT(overtaken_by >= Duration());
    overtaken_by_.on_delay(overtaken_by);
    if (orders_ < kOrdersMin) ++orders_;
  }
  // The set of paths has changed: the reordering seen so far no longer applies.
  void forget_order() { orders_ = 0; }
  // A packet that was declared lost had arrived: the reorder window grows by `more`, up to `most`
  // above what the delays ask for.
  struct Spurious {
    Duration more, most;
  };
  void on_spurious(Spurious by) {
    WEFT_ASSERT(by.more >= Duration());
    extra_ = std::min(extra_ + by.more, by.most);
  }

  // The largest recent delay above the base RTT.
  Duration spread() const { return spread_.value(); }

  // A packet is proven lost by the arrival of one that was sent this much later.
  Duration reorder_window(Duration base_rtt) const {
    const Duration seen = orders_ < kOrdersMin ? spread() : overtaken_by_.value() * 2;
    return base_rtt / 4 + std::min(seen, spread()) + extra_;
  }

 private:
  DelaySpread spread_;
  DecayingMax<1024> overtaken_by_;
  static constexpr std::uint16_t kOrdersMin = 256;
  std::uint16_t orders_ = 0;
  Duration extra_;
};

// How complete our knowledge of the PSNs is that the responder has above its cumulative PSN.
enum class Knowledge : std::uint8_t {
  kComplete,  // every PSN there is known: any other PSN sent before the trigger is missing
  kPartial,   // a SACK was lost or overtaken: only the 64 PSNs of this SACK's bitmap are known
};
constexpr Knowledge knowledge(bool newest, std::uint32_t ooo_count,
                              std::uint32_t known_above_cack) {
  constexpr std::uint32_t kSaturated = 0x7fff;
  return newest && ooo_count == known_above_cack && ooo_count < kSaturated ? Knowledge::kComplete
                                                                           : Knowledge::kPartial;
}

}  // namespace weft::transport
