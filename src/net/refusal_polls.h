// RefusalPolls: decides when, and for which plane, the sending sockets are polled for refusals. A
// host sends an ICMP error when no process has the UDP port of a packet; the error queue of the
// sending socket then holds the packet's destination.
//
// While packets are sent, the planes are polled in turn; after the last packet each plane is polled
// once more. The sockets are not watched, because the kernel would notify a watcher of each packet
// that is sent (docs/decisions/0013). Reads no clock: times are arguments.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace weft::net {

class RefusalPolls {
 public:
  static constexpr Duration kEvery = Duration::ms(2);

  explicit RefusalPolls(std::uint32_t plane_count) : plane_count_(plane_count) {}

  void note_send(Time now) {
    sent_at_ = now;
    next_ = std::min(next_, now + kEvery);
  }
  // The time of the next poll; kNever while nothing is sent.
  Time next() const { return next_; }
  std::uint32_t plane() const { return plane_; }
  // plane() was polled. kSome: it has more refusals, so polling continues.
  enum class Left : std::uint8_t { kNone, kSome };
  void note_poll(Time now, Left left) {
    if (left == Left::kSome) sent_at_ = now;
    plane_ = plane_ + 1 == plane_count_ ? 0 : plane_ + 1;
    const bool over = now - sent_at_ > kEvery * (std::int64_t{plane_count_} + 1);
    next_ = over ? kNever : now + kEvery;
  }

 private:
  std::uint32_t plane_count_, plane_ = 0;
  Time next_ = kNever, sent_at_;
};

}  // namespace weft::net
