// ReadyRing: the QPs that may have something to send, in turn.
//
// Invariant: a QP whose `ready` flag is set is in the ring exactly once; other QPs are not in the
// ring. The flag is in the QP. QPs are named by their index. Owned by the endpoint.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "base/ring.h"

namespace weft::transport {

class ReadyRing {
 public:
  explicit ReadyRing(std::uint32_t qp_count_max) : ring_(qp_count_max) {}

  bool empty() const { return ring_.empty(); }
  std::size_t size() const { return ring_.size(); }
  std::size_t bytes() const { return ring_.bytes(); }

  // Puts the QP behind all others. Does nothing if the QP is in the ring.
  void add(std::uint32_t index, bool& ready) {
    if (ready) return;
    ready = true;
    ring_.push(index);
  }
  // The QP whose turn it is. REQUIRES !empty().
  std::uint32_t front() { return ring_.front(); }
  // The QP whose turn it is goes behind all others. REQUIRES !empty().
  void rotate() {
    const std::uint32_t index = ring_.front();
    ring_.pop();
    ring_.push(index);
  }
  // The QP whose turn it is has nothing to send. REQUIRES that `ready` is its flag.
  void pop(bool& ready) {
    WEFT_ASSERT(ready);
    ready = false;
    ring_.pop();
  }
  // The QP is destroyed.
  void forget(std::uint32_t index) {
    for (std::size_t left = ring_.size(); left > 0; --left) {
      const std::uint32_t other = ring_.front();
      ring_.pop();
      if (other != index) ring_.push(other);
    }
  }

 private:
  Ring<std::uint32_t> ring_;
};

}  // namespace weft::transport
