// RetryTimer: the local ACK timer (reference section 6.2): so often at one interval, then doubling,
// then it gives up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "transport/config.h"

namespace weft::transport {

class RetryTimer {
 public:
  explicit RetryTimer(const RetryConfig& config) : config_(config) {}

  bool is_armed() const { return armed_; }
  Time deadline() const { return armed_ ? deadline_ : kNever; }
  // When the interval under way began. REQUIRES is_armed().
  Time started() const { return deadline_ - interval(); }
  std::uint32_t expiries() const { return expiries_; }
  bool is_backed_off() const { return expiries_ > 0; }

  void disarm() {
    armed_ = false;
    expiries_ = 0;
  }
  // Something is waited for from now on.
  void arm(Time now) {
    if (!armed_) restart(now);
  }
  // Progress: the interval starts anew.
  void restart(Time now) {
    armed_ = true;
    deadline_ = now + interval();
  }
  // Progress that also forgets earlier expiries.
  void reset(Time now) {
    expiries_ = 0;
    if (armed_) restart(now);
  }
  // It fired. False: give up.
  bool expire(Time now) {
    if (expiries_ < 0xffff) ++expiries_;
    const std::uint32_t limit = config_.linear_count + config_.exponential_count;
    if (config_.exponential_count < kRetryForever && expiries_ > limit) return false;
    restart(now);
    return true;
  }

 private:
  Duration interval() const {
    constexpr std::uint32_t kShiftMax = 24;  // 17.2 s
    std::uint32_t shift = config_.timeout;
    if (expiries_ > config_.linear_count) shift += expiries_ - config_.linear_count;
    return Duration::ns(1024) * (std::int64_t{1} << std::min(shift, kShiftMax));
  }
  RetryConfig config_;
  std::uint16_t expiries_ = 0;
  bool armed_ = false;
  Time deadline_;
};

}  // namespace weft::transport
