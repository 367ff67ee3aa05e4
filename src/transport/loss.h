// LossDetector: what is lost, and when do we decide so?
//
// A packet is lost when the responder is known to have received something sent long enough after
// it, and knowledge of what it has is complete (docs/decisions/0002). "Long enough" is the reorder
// window: paths differ by what queues on them, so it follows the spread of measured delays, and
// grows when a loss turns out not to have been one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.h"
#include "base/time.h"

namespace weft::transport {

// How late software may be and still be taken for alive: within the 10 ms in which a dead plane
// must be left. A plane whose losses go on for longer is judged, however late packets came before;
// spurious losses make the reorder window longer by half of it. The echoed times of SACKs reach
// about as far (16 bits of 128 ns). Retry timers, which are the last resort, wait longer:
// RetryTimer::kSlackMax.
inline constexpr Duration kLateMax = Duration::ms(8);

// The largest of the recent delays: up at once, down by a part of the difference with every sample;
// zero, and not known, before the first.
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
  Duration value_ = Duration::ps(-1);  // none seen yet
};

using DelaySpread = DecayingMax<64>;

class LossDetector {
 public:
  // An RTT sample, as delay above the base RTT.
  void on_delay(Duration delay) {
    WEFT_ASSERT(delay >= Duration());
    spread_.on_delay(delay);
    extra_ -= extra_ / 1024;
  }
  // A SACK acknowledged something first: how much later than the oldest of it a packet was sent that
  // was acknowledged before; zero: none was. After enough of these, twice the largest recent one
  // bounds the window.
  void on_order(Duration overtaken_by) {
    WEFT_ASSERT(overtaken_by >= Duration());
    overtaken_by_.on_delay(overtaken_by);
    if (orders_ < kOrdersMin) ++orders_;
  }
  // There are other paths now: the order seen so far says nothing any more.
  void forget_order() { orders_ = 0; }
  // A packet that was declared lost had arrived: the window grows by `more`, to `most` beyond what
  // delays ask for.
  struct Spurious {
    Duration more, most;
  };
  void on_spurious(Spurious by) {
    WEFT_ASSERT(by.more >= Duration());
    extra_ = std::min(extra_ + by.more, by.most);
  }

  // The largest recent delay.
  Duration spread() const { return spread_.value(); }

  // How much later than a packet another must have been sent whose arrival proves the first lost.
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

// How much a SACK tells about the responder's set of PSNs above its cumulative edge.
enum class Knowledge : std::uint8_t {
  kComplete,  // we know each PSN it has: any other sent before the trigger is missing there
  kPartial,   // a SACK was lost or overtaken: only the 64 PSNs that this one speaks of count
};
constexpr Knowledge knowledge(bool newest, std::uint32_t ooo_count,
                              std::uint32_t known_above_cack) {
  constexpr std::uint32_t kSaturated = 0x7fff;
  return newest && ooo_count == known_above_cack && ooo_count < kSaturated ? Knowledge::kComplete
                                                                           : Knowledge::kPartial;
}

}  // namespace weft::transport
