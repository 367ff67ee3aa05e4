// RefusalPolls: when the sending sockets of which plane are polled for refusals. A host answers
// with ICMP when no process has the port that we sent to; the error queue of the sending socket
// then holds the destination of the refused packet.
//
// One plane has its turn at a time while packets are sent, and all of them once more after the
// last. The sockets are not watched, because the kernel would notify a watcher of each packet that
// is sent (docs/decisions/0013). Arithmetic on the times that are given.
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
  // When the next plane is to be polled; kNever while nothing is sent.
  Time next() const { return next_; }
  std::uint32_t plane() const { return plane_; }
  // The plane was polled; kSome: it has more refusals, so polling goes on.
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
