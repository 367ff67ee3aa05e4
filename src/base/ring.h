// Ring<T>: a queue of fixed capacity (a power of two). Memory is reserved once, at construction,
// and first touched when it is used.
#pragma once

#include <cstddef>
#include <memory>

#include "base/assert.h"

namespace weft {

template <typename T>
class Ring {
 public:
  Ring() = default;
  // Holds at least `capacity_min` elements.
  explicit Ring(std::size_t capacity_min) {
    std::size_t size = 1;
    while (size < capacity_min) size *= 2;
    slots_ = std::make_unique_for_overwrite<T[]>(size);
    mask_ = size - 1;
  }

  bool empty() const { return head_ == tail_; }
  bool full() const { return size() == capacity(); }
  std::size_t size() const { return tail_ - head_; }
  std::size_t capacity() const { return slots_ ? mask_ + 1 : 0; }

  std::size_t bytes() const { return capacity() * sizeof(T); }

  // REQUIRES !full().
  T& push(const T& value) {
    WEFT_ASSERT(!full());
    T& slot = slots_[tail_++ & mask_];
    slot = value;
    return slot;
  }
  // Appends an element without writing it: it holds an old value until the caller writes it.
  // REQUIRES !full().
  T& push_slot() {
    WEFT_ASSERT(!full());
    return slots_[tail_++ & mask_];
  }
  // REQUIRES !empty().
  T& front() {
    WEFT_ASSERT(!empty());
    return slots_[head_ & mask_];
  }
  // When the ring becomes empty it restarts at its first element, so that a short queue keeps using
  // the same cache lines.
  void pop() {
    WEFT_ASSERT(!empty());
    if (++head_ == tail_) clear();
  }
  // The i-th element from the front, from 0. REQUIRES i < size().
  T& operator[](std::size_t i) {
    WEFT_ASSERT(i < size());
    return slots_[(head_ + i) & mask_];
  }
  const T& operator[](std::size_t i) const { return const_cast<Ring&>(*this)[i]; }
  void clear() { head_ = tail_ = 0; }

 private:
  std::unique_ptr<T[]> slots_;
  std::size_t mask_ = 0, head_ = 0, tail_ = 0;
};

}  // namespace weft
