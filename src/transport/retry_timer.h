// RetryTimer: the local ACK timer. It expires a number of times at one interval, then at doubling
// intervals, and then gives up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.h"
#include "base/time.h"
#include "transport/config.h"

namespace weft::transport {

class RetryTimer {
 public:
  explicit RetryTimer(const RetryConfig& config) : config_(config) {}

  bool is_armed() const { return armed_; }
  Time deadline() const { return armed_ ? deadline_ : kNever; }
  // When the current interval began. REQUIRES is_armed().
  Time started() const {
    WEFT_ASSERT(armed_);
    return deadline_ - interval() - slack_;
  }
  bool is_backed_off() const { return expiries_ > 0; }

  void disarm() {
    armed_ = false;
    expiries_ = 0;
  }
  // Starts waiting for an answer. Does nothing if an interval has begun.
  void arm(Time now) {
    if (armed_) return;
    waiting_since_ = now;
    restart(now);
  }
  // Sets how much longer answers are known to take: each interval is extended by it.
  static constexpr Duration kSlackMax = Duration::ms(100);
  void set_slack(Duration slack) {
    WEFT_ASSERT(slack >= Duration());
    slack = std::min(slack, kSlackMax);
    deadline_ += slack - slack_;  // the interval's start stays
    slack_ = slack;
  }
  // Starts the interval anew.
  void restart(Time now) {
    armed_ = true;
    deadline_ = now + interval() + slack_;
  }
  // The peer is alive: back to the first interval. There was no progress: the total time until it
  // gives up goes on.
  void on_peer_alive(Time now) {
    expiries_ = 0;
    if (armed_) restart(now);
  }
  // The expected answer came.
  void on_progress(Time now) {
    waiting_since_ = now;
    on_peer_alive(now);
  }
  // The timer fired. False: give up, after the configured number of expiries, or after the sum of
  // their intervals without progress. REQUIRES now >= deadline().
  bool expire(Time now) {
    WEFT_ASSERT(armed_ && now >= deadline_);
    if (expiries_ < 0xffff) ++expiries_;
    const std::uint32_t limit = config_.linear_count + config_.exponential_count;
    const bool forever = config_.exponential_count >= kRetryForever;
    if (!forever && (expiries_ > limit || now - waiting_since_ >= patience())) return false;
    restart(now);
    return true;
  }

 private:
  Duration interval(std::uint32_t expiries) const {
    constexpr std::uint32_t kShiftMax = 24;  // 17.2 s
    std::uint32_t shift = config_.timeout;
    if (expiries > config_.linear_count) shift += expiries - config_.linear_count;
    return Duration::ns(1024) * (std::int64_t{1} << std::min(shift, kShiftMax));
  }
  Duration interval() const { return interval(expiries_); }
  // The sum of all intervals.
  Duration patience() const {
    Duration sum;
    for (std::uint32_t n = 0; n <= config_.linear_count + config_.exponential_count; ++n)
      sum += interval(n);
    return sum;
  }
  RetryConfig config_;
  std::uint16_t expiries_ = 0;
  bool armed_ = false;
  Time deadline_, waiting_since_;
  Duration slack_;
};

}  // namespace weft::transport
