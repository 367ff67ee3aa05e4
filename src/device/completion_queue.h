// CompletionQueue: the completions of some QPs, from the engine to the threads that poll.
//
// The engine pushes under its own lock; any thread may poll. Capacity is fixed. If a completion
// finds the queue full, it is lost, and the queue stays in overrun from then on, as in hardware.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "device/completion_channel.h"
#include "device/short_lock.h"

namespace weft::device {

enum class Solicited : std::uint8_t { kNo, kYes };

class CompletionQueue {
 public:
  static constexpr int kEntriesMax = 1 << 20;
  // `channel` may be null; it outlives the queue. `handle` identifies this queue in its events.
  CompletionQueue(std::uint32_t entries_min, CompletionChannel* channel, const void* handle);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // kLost: the queue was full. kFirstLost: the same, for the first time.
  enum class Pushed : std::uint8_t { kYes, kLost, kFirstLost };
  Pushed push(const ibv_wc& completion, Solicited solicited);
  // Adds several successful writes. The queue is locked as long as the Run lives.
  class Run {
   public:
    explicit Run(CompletionQueue& cq) : cq_(cq) { cq_.lock_.lock(); }
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    // The next free entry, or null if the queue is full. The caller sets all fields.
    ibv_wc* next() { return cq_.has_room() ? &cq_.slot(cq_.tail_++) : nullptr; }

   private:
    CompletionQueue& cq_;
  };
  std::size_t poll(std::span<ibv_wc> out);
  bool is_empty() const { return size_.load(std::memory_order_acquire) == 0; }
  bool is_overrun() const { return overrun_.load(std::memory_order_relaxed); }

  // Asks for one event on the channel. kAny: at the next completion. kSolicited: at the next
  // completion that is solicited or an error.
  enum class Notify : std::uint8_t { kNone, kSolicited, kAny };
  void arm(Notify at);
  // True once after arm(): the next poll is probably the last one before the program sleeps.
  bool take_is_last_poll() {
    return is_last_poll_.load(std::memory_order_relaxed) &&
           is_last_poll_.exchange(false, std::memory_order_relaxed);
  }
  // Removes the completions of a QP that is destroyed or reset.
  void forget_qp(std::uint32_t qpn);

  CompletionChannel* channel() const { return channel_; }
  const void* handle() const { return handle_; }
  std::uint32_t entries() const { return mask_ + 1; }

 private:
  // The functions below REQUIRE the lock.
  std::uint32_t size() const { return tail_ - head_; }
  // After an overrun no completion is added: it would be out of order.
  bool has_room() const { return size() <= mask_ && !overrun_.load(std::memory_order_relaxed); }
  ibv_wc& slot(std::uint32_t at) { return slots_[at & mask_]; }

  ShortLock lock_;
  // A ring whose size is a power of two; pages are touched when first used. Ring (base/ring.h) does
  // not fit, because completions are taken several at a time.
  std::uint32_t mask_, head_ = 0, tail_ = 0;
  std::unique_ptr<ibv_wc[]> slots_;
  std::atomic<std::uint32_t> size_{0};
  std::atomic<bool> overrun_{false};
  Notify armed_ = Notify::kNone;
  std::atomic<bool> is_last_poll_{false};
  CompletionChannel* channel_;
  const void* handle_;
};

}  // namespace weft::device
