// When an endpoint must be called: its timers, and the earliest deadline of its QPs.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/time.h"

namespace weft::transport {

// All timers of an endpoint. Timers that are due in the same call fire in this order.
enum class EndpointTimer : std::uint8_t {
  kRequestor,       // a requestor: an answer is overdue (retry, tail), or pacing allows a packet
  kEvProbe,         // EvProber: a condemned EV or plane is probed again
  kPortStatus,      // PortStatus: an update that a peer has not answered is sent again
  kRefused,         // RefusedPeers: a QP probes a peer that may be gone once more, or fails
  kDelayedAnswers,  // AnswerScheduler: SACKs and Transport ACKs have waited long enough for data
  kQuietReport,     // AnswerScheduler: data that no SACK reports is reported unasked
};
inline constexpr std::array kEndpointTimers = {
    EndpointTimer::kRequestor, EndpointTimer::kEvProbe,        EndpointTimer::kPortStatus,
    EndpointTimer::kRefused,   EndpointTimer::kDelayedAnswers, EndpointTimer::kQuietReport};
static_assert(kEndpointTimers.size() ==
              std::size_t{1} + static_cast<std::size_t>(kEndpointTimers.back()));

// DeadlineHeap: the earliest deadline of an endpoint's QPs. A binary heap in which each QP's
// position is known. An entry may be earlier than the QP's true deadline, as progress moves
// deadlines on all the time: the caller that takes the top asks the QP for its deadline.
class DeadlineHeap {
 public:
  explicit DeadlineHeap(std::uint32_t count_max) : place_(count_max, kAbsent) {
    heap_.reserve(count_max);
  }

  Time top() const { return top_; }
  std::size_t bytes() const { return heap_.capacity() * sizeof(Entry) + place_.capacity() * 4; }
  // REQUIRES top() != kNever.
  std::uint32_t top_index() const {
    WEFT_ASSERT(!heap_.empty());
    return heap_[0].index;
  }

  // Moves the deadline of `index` to `at` if it is later than that. REQUIRES index < count_max.
  void at_latest(std::uint32_t index, Time at) {
    WEFT_ASSERT(index < place_.size());
    if (at == kNever) return;
    if (place_[index] == kAbsent) {
      place_[index] = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back({at, index});
      up(place_[index]);
    } else if (at < heap_[place_[index]].at) {
      heap_[place_[index]].at = at;
      up(place_[index]);
    }
    top_ = heap_[0].at;
  }
  // Sets the deadline to exactly `at`; kNever removes the entry.
  void set(std::uint32_t index, Time at) {
    if (at == kNever) return remove(index);
    const std::uint32_t place = place_[index];
    if (place == kAbsent || at < heap_[place].at) return at_latest(index, at);
    heap_[place].at = at;
    down(place);
    top_ = heap_[0].at;
  }
  void remove(std::uint32_t index) {
    const std::uint32_t place = place_[index];
    if (place == kAbsent) return;
    WEFT_ASSERT(heap_[place].index == index);
    place_[index] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (place < heap_.size()) {
      heap_[place] = last;
      place_[last.index] = place;
      up(place);
      down(place_[last.index]);
    }
    top_ = heap_.empty() ? kNever : heap_[0].at;
  }

 private:
  static constexpr std::uint32_t kAbsent = 0xffff'ffff;
  struct Entry {
    Time at;
    std::uint32_t index;
  };
  // Equal times are ordered by index, so that the order does not depend on the history of calls.
  static bool earlier(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at < b.at : a.index < b.index;
  }
  void swap(std::uint32_t a, std::uint32_t b) {
    std::swap(heap_[a], heap_[b]);
    place_[heap_[a].index] = a;
    place_[heap_[b].index] = b;
  }
  void up(std::uint32_t i) {
    for (; i > 0 && earlier(heap_[i], heap_[(i - 1) / 2]); i = (i - 1) / 2) swap(i, (i - 1) / 2);
  }
  void down(std::uint32_t i) {
    for (;;) {
      std::uint32_t least = i;
      for (std::uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap_.size(); ++child) {
        if (earlier(heap_[child], heap_[least])) least = child;
      }
      if (least == i) return;
      swap(i, least);
      i = least;
    }
  }

  Time top_ = kNever;  // a copy, so that reading it does not touch the heap
  std::vector<Entry> heap_;
  std::vector<std::uint32_t> place_;
};

}  // namespace weft::transport
