// EventQueue: pending events in the total order (time, order of insertion).
//
// There are two timer wheels of 4,096 buckets. The first covers the current window of 4.2 us in
// steps of 1.024 ns, the second the current window of 17 ms in steps of 4.2 us. A heap holds later
// events. Buckets are chains of blocks from one pool, so that memory is proportional to the number
// of pending events. When a bucket becomes current, it is sorted (a stable counting sort by
// picosecond) into a plain array: the reader sees the next events and can prefetch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/huge_pages.h"
#include "base/time.h"

namespace weft::sim {

// The reader of the queue defines the meaning of `what` and `arg`.
struct Event {
  std::int64_t at = 0;  // ps
  std::uint32_t what = 0;
  std::uint32_t arg = 0;
};

class EventQueue {
 public:
  EventQueue();

  // REQUIRES at >= the time of the last popped event, and >= the limit of a pop that returned
  // false.
  void push(Time at, std::uint32_t what, std::uint32_t arg);
  // Takes the next event if its time is at or before `limit`; otherwise returns false.
  bool pop(Time limit, Event& out) {
    if (cursor_ == current_.size() && !refill(limit.ps())) return false;
    if (current_[cursor_].at > limit.ps()) return false;
    out = current_[cursor_++];
    --pending_;
    return true;
  }
  // The event that follows `ahead` places after the next one; null if it is not sorted yet.
  const Event* peek(std::size_t ahead) const {
    return cursor_ + ahead < current_.size() ? &current_[cursor_ + ahead] : nullptr;
  }
  bool empty() const { return pending_ == 0; }
  std::uint64_t pending() const { return pending_; }
  std::uint64_t bytes() const;

 private:
  static constexpr int kStepBits = 10;   // 1.024 ns
  static constexpr int kWheelBits = 12;  // 4,096 buckets
  static constexpr std::uint32_t kBuckets = 1u << kWheelBits;
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  static constexpr std::uint32_t kBlockEvents = 31;

  struct Block {
    Event events[kBlockEvents];
    std::uint32_t next = kNone;
    std::uint32_t count = 0;  // valid in all blocks of a bucket except the last
  };
  // The bucket stores how full its last block is, so that adding an event does not read the block.
  struct Bucket {
    std::uint32_t head = kNone, tail = kNone;
    std::uint32_t tail_count = 0;
  };
  struct Wheel {
    std::array<Bucket, kBuckets> buckets;
    std::array<std::uint64_t, kBuckets / 64> occupied{};
  };
  struct Far {
    Event event;
    std::uint64_t sequence;
  };

  void append(Wheel& wheel, std::uint32_t bucket, const Event& event);
  static std::uint32_t first_occupied(const Wheel& wheel, std::uint32_t from);
  bool refill(std::int64_t limit);
  void activate(std::uint32_t bucket);
  void cascade(std::uint32_t bucket);
  void fetch_far();
  void insert_current(const Event& event);

  Wheel near_, middle_;
  std::vector<Far> far_;  // a heap
  std::vector<Block, base::HugeAllocator<Block>> blocks_;
  std::uint32_t free_block_ = kNone;
  std::vector<Event> current_, gathered_;
  std::size_t cursor_ = 0;
  std::int64_t current_step_ = -1;  // the bucket in current_: at >> kStepBits
  // number of the span of time that near_ covers: (event time) >> (kStepBits + kWheelBits)
  std::int64_t near_window_ = 0;
  // the same for middle_: (event time) >> (kStepBits + 2 * kWheelBits)
  std::int64_t middle_window_ = 0;
  std::uint64_t pending_ = 0, sequence_ = 0;
};

}  // namespace weft::sim
