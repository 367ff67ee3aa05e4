// SharedBuffer: the packet memory of one switch, shared by its ports.
//
// The queue of a port is limited by its own bound and by a share (alpha) of the bytes that are free
// now. Bytes of packets that have left are freed lazily: departures stay in a heap, ordered by
// time, until the next call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace weft::switching {

class SharedBuffer {
 public:
  SharedBuffer(std::uint64_t bytes, std::uint32_t alpha_percent)
      : free_(bytes), alpha_percent_(alpha_percent) {}

  // The bytes that the queue of one port may hold now.
  std::uint64_t limit(Time now) {
    drain(now);
    return free_ * alpha_percent_ / 100;
  }
  bool has_room(std::uint32_t size) const { return size <= free_; }
  // REQUIRES has_room(size).
  void take(std::uint32_t size, Time leaves_at) {
    free_ -= size;
    departures_.push_back({leaves_at, size});
    std::push_heap(departures_.begin(), departures_.end(), leaves_later);
  }
  std::uint64_t free_bytes() const { return free_; }

 private:
  struct Departure {
    Time at;
    std::uint32_t size;
  };
  static bool leaves_later(const Departure& a, const Departure& b) { return a.at > b.at; }
  void drain(Time now) {
    while (!departures_.empty() && departures_.front().at <= now) {
      free_ += departures_.front().size;
      std::pop_heap(departures_.begin(), departures_.end(), leaves_later);
      departures_.pop_back();
    }
  }
  std::vector<Departure> departures_;  // bounded: each is at least a minimal frame
  std::uint64_t free_;
  std::uint32_t alpha_percent_;
};

}  // namespace weft::switching
