// ProbeBudget: how many reliability probes an endpoint may send. Between software ends a probe
// costs both ends as much as a burst of data. The probes of a thousand QPs to a slow peer would by
// themselves keep it slow.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace weft::transport {

class ProbeBudget {
 public:
  // `per_ms` probes per millisecond on average, and 8 ms' worth at once. 0: no bound.
  explicit ProbeBudget(std::uint32_t per_ms)
      : per_ms_(per_ms), token_thousandths_(std::int64_t{per_ms} * kBurst * 1000) {}

  bool is_bounded() const { return per_ms_ > 0; }
  // A probe is about to be sent. False: the budget is used up for now.
  bool take(Time now) {
    if (per_ms_ == 0) return true;
    const std::int64_t us = std::max<std::int64_t>((now - filled_at_).us(), 0);
    filled_at_ += Duration::us(us);
    const std::int64_t most = std::int64_t{per_ms_} * kBurst * 1000;
    token_thousandths_ =
        us >= kBurst * 1000 ? most : std::min(token_thousandths_ + us * per_ms_, most);
    if (token_thousandths_ < 1000) return false;
    token_thousandths_ -= 1000;
    return true;
  }

 private:
  static constexpr std::int64_t kBurst = 8;  // ms

  std::uint32_t per_ms_;
  std::int64_t token_thousandths_;
  Time filled_at_;
};

}  // namespace weft::transport
