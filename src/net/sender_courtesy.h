// SenderCourtesy: on oversubscribed cores a process that mostly sends to another process of this
// host must not preempt it: each acknowledgement would wake the sender, which would take the core
// from the receiver that still has packets to process.
// Such a process waits for its core (os/courtesy.h). Arithmetic on the values that are given.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace weft::net {

class SenderCourtesy {
 public:
  // Packets since the start, and whether the last one came from a process of this host.
  struct Traffic {
    std::uint64_t sent = 0, received = 0;
    bool is_from_here = false;
  };
  // The cores are oversubscribed. True: this process is courteous from now on, for a while.
  bool on_oversubscribed(Time now, const Traffic& traffic) {
    const std::uint64_t sent = traffic.sent - sent_, received = traffic.received - received_;
    sent_ = traffic.sent;
    received_ = traffic.received;
    if (!traffic.is_from_here || sent <= kSendsMostly * received) return false;
    until_ = now + kFor;
    return true;
  }
  bool is_over(Time now) const { return now >= until_; }

 private:
  // This ratio of packets sent to received means that this process sends messages and receives
  // mostly acknowledgements.
  static constexpr std::uint64_t kSendsMostly = 2;
  // Longer than a yield counts that showed oversubscribed cores, because to detect them takes
  // spinning.
  static constexpr Duration kFor = Duration::ms(500);

  Time until_;
  std::uint64_t sent_ = 0, received_ = 0;  // when on_oversubscribed() was last called
};

}  // namespace weft::net
