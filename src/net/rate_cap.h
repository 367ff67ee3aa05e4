// RateCap: limits the payload bits per second, over all planes together. It is a token bucket that
// fills at the rate; sending takes tokens. A poll may send more than the bucket holds. Later polls
// wait until this debt is repaid, so the average rate holds.
//
// Sending is allowed when there are tokens for a quantum: a run of packets, or a quarter of a
// millisecond's worth if that is less. So runs stay whole, and no packet waits for long. The bucket
// holds two milliseconds' worth, so that a process that has to wait for its CPU loses no rate. A
// value; time is an argument and does not go back.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/rate.h"
#include "base/time.h"

namespace weft::net {

class RateCap {
 public:
  // REQUIRES a rate of 1 Mb/s or more. `mtu`: payload of a full packet.
  RateCap(Rate rate, std::uint32_t mtu)
      : rate_(rate),
        depth_(std::max(static_cast<std::int64_t>(rate.bytes_in(kDepth)), 2 * std::int64_t{mtu})),
        quantum_(std::clamp(static_cast<std::int64_t>(rate.bytes_in(kQuantum)), std::int64_t{mtu},
                            std::int64_t{kRunPackets} * mtu)),
        mtu_(mtu),
        tokens_(depth_) {}

  // How many full packets may be sent now; 0 below a quantum of tokens.
  std::uint32_t packets(Time now) {
    fill(now);
    if (tokens_ < quantum_) return 0;
    return static_cast<std::uint32_t>(std::max<std::int64_t>(tokens_ / mtu_, 1));
  }
  void spend(std::uint64_t payload_bytes) { tokens_ -= static_cast<std::int64_t>(payload_bytes); }
  // The time at which packets() becomes more than 0. If packets may be sent now, it is not after
  // `now`.
  Time opens_at() const {
    if (tokens_ >= quantum_) return filled_at_;
    // Rounded up to the next whole byte.
    return filled_at_ + rate_.time_for(static_cast<std::uint64_t>(quantum_ - tokens_ + 1));
  }

 private:
  static constexpr Duration kDepth = Duration::ms(2), kQuantum = Duration::us(250);
  static constexpr std::uint32_t kRunPackets = 16;

  void fill(Time now) {
    if (now <= filled_at_) return;
    // Bounded against overflow. 60 s fill any bucket and repay any debt of one poll.
    const Duration passed = std::min(now - filled_at_, Duration::s(60));
    const auto bytes = static_cast<std::int64_t>(rate_.bytes_in(passed));
    // Consumes the time of whole bytes only; the fraction of a byte is left for the next call.
    filled_at_ = now - (passed - rate_.time_for(static_cast<std::uint64_t>(bytes)));
    tokens_ = std::min(tokens_ + bytes, depth_);
  }

  Rate rate_;
  std::int64_t depth_, quantum_, mtu_, tokens_;
  Time filled_at_{};
};

}  // namespace weft::net
