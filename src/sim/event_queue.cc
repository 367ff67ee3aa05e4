#include "sim/event_queue.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace weft::sim {

EventQueue::EventQueue() = default;

void EventQueue::append(Wheel& wheel, std::uint32_t index, const Event& event) {
  Bucket& bucket = wheel.buckets[index];
  if (bucket.tail == kNone || bucket.tail_count == kBlockEvents) {
    std::uint32_t block = free_block_;
    if (block != kNone) {
      free_block_ = blocks_[block].next;
    } else {
      block = static_cast<std::uint32_t>(blocks_.size());
      blocks_.emplace_back();
    }
    blocks_[block].next = kNone;
    if (bucket.tail == kNone) {
      bucket.head = block;
      wheel.occupied[index / 64] |= 1ull << index % 64;
    } else {
      blocks_[bucket.tail].next = block;
      blocks_[bucket.tail].count = kBlockEvents;
    }
    bucket.tail = block;
    bucket.tail_count = 0;
  }
  blocks_[bucket.tail].events[bucket.tail_count++] = event;
}

void EventQueue::push(Time time, std::uint32_t what, std::uint32_t arg) {
  const Event event{.at = time.ps(), .what = what, .arg = arg};
  ++pending_;
  const std::int64_t step = event.at >> kStepBits;
  if (step <= current_step_) return insert_current(event);
  if (step >> kWheelBits == near_window_) {
    append(near_, static_cast<std::uint32_t>(step) & (kBuckets - 1), event);
    return;
  }
  WEFT_ASSERT(step >> kWheelBits > near_window_);  // a past window is never read
  if (step >> 2 * kWheelBits == middle_window_) {
    append(middle_, static_cast<std::uint32_t>(step >> kWheelBits) & (kBuckets - 1), event);
  } else {
    far_.push_back({event, sequence_++});
    std::push_heap(far_.begin(), far_.end(), [](const Far& a, const Far& b) {
      return a.event.at != b.event.at ? a.event.at > b.event.at : a.sequence > b.sequence;
    });
  }
}

// Inserts an event into the current bucket, after all events of the same time.
void EventQueue::insert_current(const Event& event) {
  WEFT_ASSERT(cursor_ == 0 || event.at >= current_[cursor_ - 1].at);
  const auto place =
      std::upper_bound(current_.begin() + static_cast<std::ptrdiff_t>(cursor_), current_.end(),
                       event, [](const Event& a, const Event& b) { return a.at < b.at; });
  current_.insert(place, event);
}

std::uint32_t EventQueue::first_occupied(const Wheel& wheel, std::uint32_t from) {
  for (std::uint32_t word = from / 64; word < kBuckets / 64; ++word) {
    std::uint64_t bits = wheel.occupied[word];
    if (word == from / 64) bits &= ~0ull << from % 64;
    if (bits != 0) return word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
  }
  return kNone;
}

// Makes the next bucket with events current. Returns false if it begins after `limit`.
bool EventQueue::refill(std::int64_t limit) {
  if (pending_ == 0) return false;
  for (;;) {
    // First choice: a later bucket of the current near window.
    const std::int64_t window_start = near_window_ << kWheelBits;
    const auto from =
        static_cast<std::uint32_t>(std::max<std::int64_t>(current_step_ + 1 - window_start, 0));
    const std::uint32_t bucket = from < kBuckets ? first_occupied(near_, from) : kNone;
    if (bucket != kNone) {
      if ((window_start + bucket) << kStepBits > limit) return false;
      activate(bucket);
      return true;
    }
    // Second choice: the next near window in the current window of the middle wheel.
    const std::int64_t turn_start = middle_window_ << kWheelBits;
    const auto next = static_cast<std::uint32_t>(near_window_ + 1 - turn_start);
    const std::uint32_t window = next < kBuckets ? first_occupied(middle_, next) : kNone;
    if (window != kNone) {
      if ((turn_start + window) << (kStepBits + kWheelBits) > limit) return false;
      near_window_ = turn_start + window;
      cascade(window);
      continue;
    }
    // Third choice: the next window of the middle wheel that has events.
    if (far_.empty()) return false;
    if (far_.front().event.at > limit) return false;
    fetch_far();
  }
}

// Moves the events of the next window that has any from the heap to the middle wheel.
void EventQueue::fetch_far() {
  const auto later = [](const Far& a, const Far& b) {
    return a.event.at != b.event.at ? a.event.at > b.event.at : a.sequence > b.sequence;
  };
  middle_window_ = far_.front().event.at >> (kStepBits + 2 * kWheelBits);
  near_window_ = (middle_window_ << kWheelBits) - 1;  // refill() adds one
  while (!far_.empty() && far_.front().event.at >> (kStepBits + 2 * kWheelBits) == middle_window_) {
    const Event event = far_.front().event;
    std::pop_heap(far_.begin(), far_.end(), later);
    far_.pop_back();
    append(middle_,
           static_cast<std::uint32_t>(event.at >> (kStepBits + kWheelBits)) & (kBuckets - 1),
           event);
  }
}

// Moves the events of one bucket of the middle wheel to the near wheel.
void EventQueue::cascade(std::uint32_t window) {
  Bucket& bucket = middle_.buckets[window];
  middle_.occupied[window / 64] &= ~(1ull << window % 64);
  if (bucket.tail != kNone) blocks_[bucket.tail].count = bucket.tail_count;
  std::uint32_t block = bucket.head;
  bucket = {};
  while (block != kNone) {
    for (std::uint32_t i = 0; i < blocks_[block].count; ++i) {
      const Event event = blocks_[block].events[i];
      append(near_, static_cast<std::uint32_t>(event.at >> kStepBits) & (kBuckets - 1), event);
    }
    const std::uint32_t next = blocks_[block].next;
    blocks_[block].next = free_block_;
    free_block_ = block;
    block = next;
  }
}

// Moves the events of a bucket to current_ in order of insertion, and sorts them stably by time.
void EventQueue::activate(std::uint32_t index) {
  gathered_.clear();
  Bucket& bucket = near_.buckets[index];
  near_.occupied[index / 64] &= ~(1ull << index % 64);
  if (bucket.tail != kNone) blocks_[bucket.tail].count = bucket.tail_count;
  std::uint32_t block = bucket.head;
  bucket = {};
  while (block != kNone) {
    Block& b = blocks_[block];
    gathered_.insert(gathered_.end(), b.events, b.events + b.count);
    const std::uint32_t next = b.next;
    b.next = free_block_;
    free_block_ = block;
    block = next;
  }
  current_step_ = (near_window_ << kWheelBits) + index;
  cursor_ = 0;
  current_.resize(gathered_.size());
  constexpr std::uint32_t kSlots = 1u << kStepBits;
  if (gathered_.size() < 128) {
    std::size_t filled = 0;
    for (const Event& event : gathered_) {
      std::size_t place = filled++;
      for (; place > 0 && current_[place - 1].at > event.at; --place)
        current_[place] = current_[place - 1];
      current_[place] = event;
    }
    return;
  }
  std::array<std::uint32_t, kSlots + 1> start{};
  for (const Event& event : gathered_)
    ++start[(static_cast<std::uint32_t>(event.at) & (kSlots - 1)) + 1];
  for (std::uint32_t i = 0; i < kSlots; ++i) start[i + 1] += start[i];
  for (const Event& event : gathered_)
    current_[start[static_cast<std::uint32_t>(event.at) & (kSlots - 1)]++] = event;
}

std::uint64_t EventQueue::bytes() const {
  return blocks_.capacity() * sizeof(Block) +
         (current_.capacity() + gathered_.capacity()) * sizeof(Event) +
         far_.capacity() * sizeof(Far) + sizeof(*this);
}

}  // namespace weft::sim
