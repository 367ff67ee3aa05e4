// CompletionQueue: the completions of an endpoint that the application has not polled yet.
//
// Each work request and receive reserves a place for its completion before it is posted, so that
// the queue never overflows. Invariant: waiting completions <= reserved places <= capacity. Owned
// by the endpoint.
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
  // True if a place can be reserved.
  bool has_room() const { return reserved_ < capacity_; }
  // REQUIRES has_room().
  void reserve() {
    WEFT_ASSERT(has_room());
    ++reserved_;
  }
  // Gives back the places of work that ended without a completion. REQUIRES count <= reserved
  // places.
  void release(std::uint32_t count) {
    WEFT_ASSERT(count <= reserved_ && ring_.size() <= reserved_ - count);
    reserved_ -= count;
  }
  // REQUIRES that a place was reserved for this completion.
  void push(const Completion& completion) {
    WEFT_ASSERT(ring_.size() < reserved_);
    ring_.push(completion);
  }
  // The queue itself, for a responder: it pushes the completions of posted receives.
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
  // Drops the completions of that QP, and gives their places back.
  void forget(Qpn qpn) {
    for (std::size_t left = ring_.size(); left > 0; --left) {
      const Completion one = ring_.front();
      ring_.pop();
      if (one.qpn == qpn) {
        --reserved_;
      } else {
        ring_.push(one);
      }
    }
  }
  std::size_t bytes() const { return ring_.bytes(); }

 private:
  Ring<Completion> ring_;
  std::uint32_t capacity_;
  std::uint32_t reserved_ = 0;
};

}  // namespace weft::transport
