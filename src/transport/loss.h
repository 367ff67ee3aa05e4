// LossDetector: what is lost, and when do we decide so?
//
// A packet is lost when the responder is known to have received something sent long enough after
// it, and knowledge of what it has is complete (docs/decisions/0002). "Long enough" is the reorder
// window: paths differ by what queues on them, so it follows the spread of measured delays, and
// grows when a loss turns out not to have been one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace weft::transport {

// The largest delay of late: up at once, down by a part with every sample.
class DelaySpread {
 public:
  void on_delay(Duration delay) {
    if (delay > value_) {
      value_ = delay;
    } else {
      value_ -= (value_ - delay) / 64;
    }
  }
  Duration value() const { return value_; }

 private:
  Duration value_;
};

class LossDetector {
 public:
  // An RTT sample, as delay above the base RTT.
  void on_delay(Duration delay) {
    spread_.on_delay(delay);
    extra_ -= extra_ / 1024;
  }
  // A packet that was declared lost had arrived.
  void on_spurious(Duration base_rtt) { extra_ = std::min(extra_ + base_rtt / 4, base_rtt * 2); }

  // The largest delay of late.
  Duration spread() const { return spread_.value(); }

  // How much later than a packet another must have been sent whose arrival proves the first lost.
  Duration reorder_window(Duration base_rtt) const { return base_rtt / 4 + spread() + extra_; }

 private:
  DelaySpread spread_;
  Duration extra_;
};

// What a SACK tells about the responder's set of PSNs above its cumulative edge.
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
