// CompletionQueue: completions of some QPs, from the engine to the polling threads.
//
// The engine pushes under its own lock, any thread polls. Capacity is fixed. A completion without
// room is lost, and the queue stays in overrun from then on, as in hardware.
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
  // `channel` may be null, and outlives the queue. `handle` is what events about this queue name.
  CompletionQueue(std::uint32_t entries_min, CompletionChannel* channel, const void* handle);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // kLost: there was no room. kFirstLost: the same, for the first time.
  enum class Pushed : std::uint8_t { kYes, kLost, kFirstLost };
  Pushed push(const ibv_wc& completion, Solicited solicited);
  // Adds several successful writes; holds the queue's lock as long as it lives.
  class Run {
   public:
    explicit Run(CompletionQueue& cq) : cq_(cq) { cq_.lock_.lock(); }
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    // The next slot, all fields to be filled by the caller; null if there is no room.
    ibv_wc* next() { return cq_.takes() ? &cq_.slot(cq_.tail_++) : nullptr; }

   private:
    CompletionQueue& cq_;
  };
  std::size_t poll(std::span<ibv_wc> out);
  bool is_empty() const { return size_.load(std::memory_order_acquire) == 0; }
  bool is_overrun() const { return overrun_.load(std::memory_order_relaxed); }

  // Asks for one event on the channel: at the next completion, or at the next solicited one (or
  // error).
  enum class Notify : std::uint8_t { kNone, kSolicited, kAny };
  void arm(Notify at);
  // Whether arm() was the last call, and resets that. Then the poll that follows is the last one
  // before the program sleeps.
  bool take_last_look() {
    return last_look_.load(std::memory_order_relaxed) &&
           last_look_.exchange(false, std::memory_order_relaxed);
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
  bool takes() const { return size() <= mask_ && !overrun_.load(std::memory_order_relaxed); }
  ibv_wc& slot(std::uint32_t at) { return slots_[at & mask_]; }

  ShortLock lock_;
  // A ring of a power of two, whose pages are touched when first used. Not Ring, as completions are
  // taken several at a time.
  std::uint32_t mask_, head_ = 0, tail_ = 0;
  std::unique_ptr<ibv_wc[]> slots_;
  std::atomic<std::uint32_t> size_{0};
  std::atomic<bool> overrun_{false};
  Notify armed_ = Notify::kNone;
  std::atomic<bool> last_look_{false};
  CompletionChannel* channel_;
  const void* handle_;
};

}  // namespace weft::device
