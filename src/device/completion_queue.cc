#include "device/completion_queue.h"

#include <algorithm>
#include <bit>

namespace weft::device {

CompletionQueue::CompletionQueue(std::uint32_t entries_min, CompletionChannel* channel,
                                 const void* handle)
    : mask_(std::bit_ceil(std::max(entries_min, 1u)) - 1),
      slots_(std::make_unique_for_overwrite<ibv_wc[]>(std::size_t{mask_} + 1)),
      channel_(channel),
      handle_(handle) {
  if (channel_ != nullptr) channel_->attach(*this);
}

CompletionQueue::~CompletionQueue() {
  if (channel_ != nullptr) channel_->detach(*this);
}

CompletionQueue::Pushed CompletionQueue::push(const ibv_wc& completion, Solicited solicited) {
  bool wanted = false;
  {
    const std::lock_guard guard(lock_);
    if (!has_room()) return overrun_.exchange(true) ? Pushed::kLost : Pushed::kFirstLost;
    slot(tail_++) = completion;
    size_.store(size(), std::memory_order_release);
    if (armed_ != Notify::kNone) {
      wanted = armed_ == Notify::kAny || solicited == Solicited::kYes ||
               completion.status != IBV_WC_SUCCESS;
      if (wanted) armed_ = Notify::kNone;
    }
  }
  if (wanted && channel_ != nullptr) channel_->notify(*this);
  return Pushed::kYes;
}

CompletionQueue::Run::~Run() {
  const bool any = cq_.size() != cq_.size_.load(std::memory_order_relaxed);
  cq_.size_.store(cq_.size(), std::memory_order_release);
  const bool wanted = any && cq_.armed_ == Notify::kAny;
  if (wanted) cq_.armed_ = Notify::kNone;
  cq_.lock_.unlock();
  if (wanted && cq_.channel_ != nullptr) cq_.channel_->notify(cq_);
}

std::size_t CompletionQueue::poll(std::span<ibv_wc> out) {
  if (is_empty()) return 0;
  const std::lock_guard guard(lock_);
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(out.size(), size()));
  const std::uint32_t first = std::min(count, mask_ + 1 - (head_ & mask_));
  std::copy_n(&slot(head_), first, out.begin());
  std::copy_n(slots_.get(), count - first, out.begin() + first);
  head_ += count;
  // An empty ring restarts at index 0, so that the slots in use stay in the CPU cache.
  if (head_ == tail_) head_ = tail_ = 0;
  size_.store(size(), std::memory_order_release);
  return count;
}

void CompletionQueue::arm(Notify at) {
  const std::lock_guard guard(lock_);
  armed_ = std::max(armed_, at);
  is_last_poll_.store(channel_ != nullptr, std::memory_order_relaxed);
}

void CompletionQueue::forget_qp(std::uint32_t qpn) {
  const std::lock_guard guard(lock_);
  std::uint32_t kept = head_;
  for (std::uint32_t at = head_; at != tail_; ++at) {
    if (slot(at).qp_num != qpn) slot(kept++) = slot(at);
  }
  tail_ = kept;
  size_.store(size(), std::memory_order_release);
}

}  // namespace weft::device
