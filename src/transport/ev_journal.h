// EvJournal: changes of EVs (bad, or good again), recorded for a controller that asked for them.
//
// Written by path sets, read by the driver of the endpoint. Bounded: changes that do not fit are
// counted.
#pragma once

#include <cstdint>

#include "base/ring.h"
#include "fabric/ev.h"

namespace weft::transport {

struct EvNews {
  std::uint32_t qpn = 0;
  fabric::Ev ev{};
  bool bad = false;  // true: condemned, alone or with its plane; false: in use again
  friend bool operator==(const EvNews&, const EvNews&) = default;
};

class EvJournal {
 public:
  explicit EvJournal(std::uint32_t capacity_min) : ring_(capacity_min) {}

  void note(const EvNews& news) {
    if (ring_.full()) {
      ++dropped_;
    } else {
      ring_.push(news);
    }
  }
  // Takes the oldest change; false if there is none.
  bool poll(EvNews& out) {
    if (ring_.empty()) return false;
    out = ring_.front();
    ring_.pop();
    return true;
  }
  std::uint64_t dropped() const { return dropped_; }

 private:
  Ring<EvNews> ring_;
  std::uint64_t dropped_ = 0;
};

}  // namespace weft::transport
