// ProbeLog: the times of a requestor's last eight reliability probes, by their ids. Tells when the
// probe was sent that a SACK answers.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"

namespace weft::transport {

class ProbeLog {
 public:
  ProbeLog() { sent_at_.fill(kNever); }

  std::uint16_t next_id() const { return next_id_; }
  // When the newest probe was sent.
  Time newest_at() const { return newest_at_; }
  // Adds a probe that is sent now, and counts as sent at `counts_from`. Returns its id.
  std::uint16_t add(Time now, Time counts_from) {
    newest_at_ = now;
    sent_at_[next_id_ % sent_at_.size()] = counts_from;
    return next_id_++;
  }
  // From when the probe with that id counts as sent; kNever if it is none of the last eight.
  Time sent_at(std::uint16_t id) const {
    const auto age = static_cast<std::uint16_t>(next_id_ - id);
    return age >= 1 && age <= sent_at_.size() ? sent_at_[id % sent_at_.size()] : kNever;
  }

 private:
  std::array<Time, 8> sent_at_;
  std::uint16_t next_id_ = 0;
  Time newest_at_;
};

}  // namespace weft::transport
