// SenderCourtesy: decides whether this process waits for its core instead of preempting the running
// thread (os/courtesy.h).
//
// On oversubscribed cores this matters for a process that mostly sends to another process of its
// host. Each acknowledgement would wake the sender, and the sender would take the core from the
// receiver, which still has packets to process. Reads no clock: times are arguments.
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
  // To be called when the cores are oversubscribed. True: this process does not preempt others for
  // the time kFor.
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
  // More packets sent than this multiple of the packets received: the process sends messages and
  // receives mostly acknowledgements.
  static constexpr std::uint64_t kSendsMostly = 2;
  // Longer than os::Waiter lets one long yield count, because detecting oversubscription takes
  // spinning.
  static constexpr Duration kFor = Duration::ms(500);

  Time until_;
  std::uint64_t sent_ = 0, received_ = 0;  // totals at the last on_oversubscribed()
};

}  // namespace weft::net
