// TailTimer: fires when an answer is overdue, and the requestor then probes. Its deadline is set
// anew as packets are sent. It fires again until something arrives, a limited number of times;
// after that only the retry timer is left.
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
  // The timer has fired since an answer last arrived.
  bool has_fired() const { return tries_ > 0; }
  bool is_exhausted() const { return tries_ >= kTries; }

  void set(Time deadline) { deadline_ = deadline; }
  void no_later_than(Time deadline) { deadline_ = std::min(deadline_, deadline); }
  void disarm() { deadline_ = kNever; }
  // Something new arrived: the number of tries starts anew. The deadline stays.
  void on_progress() { tries_ = 0; }
  // The timer fired and a probe was sent: it fires next at `next`. REQUIRES !is_exhausted().
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
