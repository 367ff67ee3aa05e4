// TailTimer: when is an answer missed? Its deadline is set anew as packets are sent; when it passes,
// the requestor probes, and again until something arrives, so many times at most. Then only the
// retry timer is left.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.h"
#include "base/time.h"

namespace weft::transport {

class TailTimer {
 public:
  static constexpr std::uint8_t kTries = 16;

  Time deadline() const { return deadline_; }
  bool is_armed() const { return deadline_ != kNever; }
  // It fired since something last arrived.
  bool has_fired() const { return tries_ > 0; }
  bool is_exhausted() const { return tries_ >= kTries; }

  void set(Time deadline) { deadline_ = deadline; }
  void no_later_than(Time deadline) { deadline_ = std::min(deadline_, deadline); }
  void disarm() { deadline_ = kNever; }
  // Something new arrived: all tries again. The deadline stays.
  void on_progress() { tries_ = 0; }
  // It fired, and an answer was asked for: the next one at `next`. REQUIRES !is_exhausted().
  void on_fired(Time next) {
    WEFT_ASSERT(!is_exhausted());
    ++tries_;
    deadline_ = next;
  }

 private:
  Time deadline_ = kNever;
  std::uint8_t tries_ = 0;
};

}  // namespace weft::transport
