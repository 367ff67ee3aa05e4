// CompletionQueue: the completions of an endpoint that the application has not polled yet.
//
// Whatever is posted reserves a place for its completion first, so that the queue never overflows.
// Invariant: waiting completions <= reserved places <= capacity. Owned by the endpoint.
#pragma once

#include <cstdint>
#include <span>

#include "base/assert.h"
#include "base/ring.h"
#include "transport/work.h"

namespace weft::transport {

class CompletionQueue {
 public:
  explicit CompletionQueue(std::uint32_t capacity) : ring_(capacity), capacity_(capacity) {}

  bool empty() const { return ring_.empty(); }
  // A place may be reserved.
  bool has_room() const { return reserved_ < capacity_; }
  // REQUIRES has_room().
  void reserve() {
    WEFT_ASSERT(has_room());
    ++reserved_;
  }
  // Gives places back: their work ended without a completion. REQUIRES that they are reserved.
  void release(std::uint32_t count) {
    WEFT_ASSERT(count <= reserved_ && ring_.size() <= reserved_ - count);
    reserved_ -= count;
  }
  // REQUIRES a reserved place for it.
  void push(const Completion& completion) {
    WEFT_ASSERT(ring_.size() < reserved_);
    ring_.push(completion);
  }
  // For a responder, which pushes the completions of posted receives.
  Ring<Completion>& ring() { return ring_; }

  // Takes up to out.size() completions, oldest first, and gives their places back.
  std::size_t poll(std::span<Completion> out) {
    WEFT_ASSERT(ring_.size() <= reserved_);
    std::size_t count = 0;
    for (; count < out.size() && !ring_.empty(); ++count) {
      out[count] = ring_.front();
      ring_.pop();
      --reserved_;
    }
    return count;
  }
  std::size_t bytes() const { return ring_.bytes(); }

 private:
  Ring<Completion> ring_;
  std::uint32_t capacity_;
  std::uint32_t reserved_ = 0;
};

}  // namespace weft::transport
