// CompletionQueue: completions of some QPs, from the engine to whoever polls.
//
// The engine pushes under its own lock, any thread polls. Capacity is fixed; a completion for which
// there is no room is lost, and the queue says so for ever (overrun), as hardware does.
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
  // `channel` may be null, and outlives the queue. `handle`: what events about it name.
  CompletionQueue(std::uint32_t entries_min, CompletionChannel* channel, const void* handle);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // kLost: there was no room; kFirstLost: for the first time.
  enum class Pushed : std::uint8_t { kYes, kLost, kFirstLost };
  Pushed push(const ibv_wc& completion, Solicited solicited);
  // Several writes that went well, under one lock for as long as this lives.
  class Run {
   public:
    explicit Run(CompletionQueue& cq) : cq_(cq) { cq_.lock_.lock(); }
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    // To be filled, all of it; null: there is no room.
    ibv_wc* next() { return cq_.takes() ? &cq_.slot(cq_.tail_++) : nullptr; }

   private:
    CompletionQueue& cq_;
  };
  std::size_t poll(std::span<ibv_wc> out);
  bool is_empty() const { return size_.load(std::memory_order_acquire) == 0; }
  bool is_overrun() const { return overrun_.load(std::memory_order_relaxed); }

  // One event on the channel at the next completion, or at the next solicited one (or error).
  enum class Notify : std::uint8_t { kNone, kSolicited, kAny };
  void arm(Notify at);
  // Whether the last thing done with it was to arm it: then the look that follows is the last of
  // somebody who goes to sleep.
  bool take_last_look() {
    return last_look_.load(std::memory_order_relaxed) &&
           last_look_.exchange(false, std::memory_order_relaxed);
  }
  // Its completions are taken out: the QP is gone, or starts again.
  void forget_qp(std::uint32_t qpn);

  CompletionChannel* channel() const { return channel_; }
  const void* handle() const { return handle_; }
  std::uint32_t entries() const { return mask_ + 1; }

 private:
  // REQUIRES the lock, all of them.
  std::uint32_t size() const { return tail_ - head_; }
  // One that lost a completion takes no more: they would not be in their turn.
  bool takes() const { return size() <= mask_ && !overrun_.load(std::memory_order_relaxed); }
  ibv_wc& slot(std::uint32_t at) { return slots_[at & mask_]; }

  ShortLock lock_;
  // A ring of a power of two, touched as it is needed; not Ring, as many are taken at a time.
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
