// SendQueue: the writes posted on one QP, from the post to the completion.
//
// A ring with three positions: posted, handed over, retired. The posting thread (one at a time)
// fills the next free slot. The thread that holds the engine's lock hands slots to the endpoint,
// and later retires them, both in order. A slot keeps its pieces of memory and its inline bytes
// until it is retired, because packets may be retransmitted. Memory is allocated at construction.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/assert.h"
#include "transport/work.h"

namespace weft::device {

// A piece of the application's memory.
struct Piece {
  std::uint64_t at = 0;
  std::uint32_t size = 0, key = 0;
};

class SendQueue {
 public:
  struct Limits {
    std::uint32_t depth = 1, pieces_max = 1, inline_max = 0;
  };
  struct Work {
    // The request for the endpoint. Until it is handed over, `local_at` is the program's address.
    // The endpoint signals every write; `signalled` below says whether the program gets a
    // completion.
    transport::WriteRequest request{};
    std::uint32_t key = 0;  // of the memory at request.local_at; only if there is one piece
    // If there are several pieces, they are in pieces(), and request.local_at is not set before
    // hand-over.
    std::uint16_t piece_count = 0;
    bool signalled = false, inlined = false;
  };

  explicit SendQueue(const Limits& limits)
      : limits_{.depth = std::bit_ceil(std::max(limits.depth, 1u)),
                .pieces_max = std::max(limits.pieces_max, 1u),
                .inline_max = limits.inline_max},
        work_(std::make_unique<Work[]>(limits_.depth)),
        pieces_(std::make_unique<Piece[]>(std::size_t{limits_.depth} * limits_.pieces_max)),
        inline_(std::make_unique<std::byte[]>(std::size_t{limits_.depth} * limits_.inline_max)) {}

  const Limits& limits() const { return limits_; }

  // --- called by the posting thread
  static constexpr std::uint32_t kNoSlot = 0xffff'ffff;
  // The slot for the next write, or kNoSlot if every slot is in use.
  std::uint32_t free_slot() const {
    const std::uint32_t posted = posted_.load(std::memory_order_relaxed), depth = limits_.depth;
    return posted - retired_.load(std::memory_order_acquire) == depth ? kNoSlot
                                                                      : posted & (depth - 1);
  }
  void publish() {
    posted_.store(posted_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // True if at most one write is not retired. Only a hint: the posting thread may read an old
  // value.
  bool is_idle_hint() const {
    return posted_.load(std::memory_order_relaxed) - retired_.load(std::memory_order_relaxed) <= 1;
  }

  // --- called by the thread that holds the engine's lock
  bool has_new() const { return handed_ != posted_.load(std::memory_order_acquire); }
  std::uint32_t new_count() const { return posted_.load(std::memory_order_acquire) - handed_; }
  // The slot of the i-th write that is posted but not handed over.
  std::uint32_t new_slot(std::uint32_t i) const { return (handed_ + i) & (limits_.depth - 1); }
  void mark_under_way(std::uint32_t count = 1) { handed_ += count; }
  bool is_idle() const { return handed_ == retired_.load(std::memory_order_relaxed); }
  std::uint32_t oldest_slot() const {
    return retired_.load(std::memory_order_relaxed) & (limits_.depth - 1);
  }
  std::uint32_t under_way() const { return handed_ - retired_.load(std::memory_order_relaxed); }
  void retire(std::uint32_t count = 1) {
    WEFT_ASSERT(count <= under_way());
    retired_.store(retired_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }
  // Removes all writes. REQUIRES that no thread posts.
  void clear() {
    handed_ = posted_.load();
    retired_ = handed_;
  }

  // --- the contents of a slot
  Work& work(std::uint32_t slot) { return work_[slot]; }
  std::span<Piece> pieces(std::uint32_t slot) {
    return {pieces_.get() + std::size_t{slot} * limits_.pieces_max, limits_.pieces_max};
  }
  std::span<std::byte> inline_bytes(std::uint32_t slot) {
    return {inline_.get() + std::size_t{slot} * limits_.inline_max, limits_.inline_max};
  }

 private:
  Limits limits_;
  std::unique_ptr<Work[]> work_;
  std::unique_ptr<Piece[]> pieces_;
  std::unique_ptr<std::byte[]> inline_;
  std::atomic<std::uint32_t> posted_{0}, retired_{0};
  std::uint32_t handed_ = 0;
};

// ReceiveQueue: the receives posted on one QP, in a ring like SendQueue's. A receive has only its
// id.
class ReceiveQueue {
 public:
  explicit ReceiveQueue(std::uint32_t depth)
      : depth_(std::bit_ceil(std::max(depth, 1u))),
        ids_(std::make_unique<std::uint64_t[]>(depth_)) {}

  std::uint32_t depth() const { return depth_; }

  // --- called by the posting thread
  bool is_full() const {
    return posted_.load(std::memory_order_relaxed) - retired_.load(std::memory_order_acquire) ==
           depth_;
  }
  void post(std::uint64_t id) {
    const std::uint32_t at = posted_.load(std::memory_order_relaxed);
    ids_[at & (depth_ - 1)] = id;
    posted_.store(at + 1, std::memory_order_release);
  }

  // --- called by the thread that holds the engine's lock
  bool has_new() const { return handed_ != posted_.load(std::memory_order_acquire); }
  std::uint64_t next_id() const { return ids_[handed_ & (depth_ - 1)]; }
  void mark_under_way() { ++handed_; }
  void retire() { retired_.store(retired_.load(std::memory_order_relaxed) + 1); }
  void clear() {
    handed_ = posted_.load();
    retired_ = handed_;
  }

 private:
  std::uint32_t depth_;
  std::unique_ptr<std::uint64_t[]> ids_;
  std::atomic<std::uint32_t> posted_{0}, retired_{0};
  std::uint32_t handed_ = 0;
};

}  // namespace weft::device
