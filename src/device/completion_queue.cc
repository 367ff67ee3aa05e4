#include "device/completion_queue.h"

#include <algorithm>

namespace weft::device {

CompletionQueue::CompletionQueue(std::uint32_t entries_min, CompletionChannel* channel,
                                 const void* handle)
    : ring_(entries_min), channel_(channel), handle_(handle) {
  if (channel_ != nullptr) channel_->attach(*this);
}

CompletionQueue::~CompletionQueue() {
  if (channel_ != nullptr) channel_->detach(*this);
}

CompletionQueue::Pushed CompletionQueue::push(const ibv_wc& completion, Solicited solicited) {
  bool wanted = false;
  {
    const std::lock_guard guard(lock_);
    if (ring_.full()) return overrun_.exchange(true) ? Pushed::kLost : Pushed::kFirstLost;
    ring_.push(completion);
    size_.store(ring_.size(), std::memory_order_release);
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
  const bool any = cq_.ring_.size() != cq_.size_.load(std::memory_order_relaxed);
  cq_.size_.store(cq_.ring_.size(), std::memory_order_release);
  const bool wanted = any && cq_.armed_ == Notify::kAny;
  if (wanted) cq_.armed_ = Notify::kNone;
  cq_.lock_.unlock();
  if (wanted && cq_.channel_ != nullptr) cq_.channel_->notify(cq_);
}

std::size_t CompletionQueue::poll(std::span<ibv_wc> out) {
  if (is_empty()) return 0;
  const std::lock_guard guard(lock_);
  const std::size_t count = std::min(out.size(), ring_.size());
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = ring_.front();
    ring_.pop();
  }
  size_.store(ring_.size(), std::memory_order_release);
  return count;
}

void CompletionQueue::arm(Notify at) {
  const std::lock_guard guard(lock_);
  armed_ = std::max(armed_, at);
}

void CompletionQueue::forget_qp(std::uint32_t qpn) {
  const std::lock_guard guard(lock_);
  for (std::size_t left = ring_.size(); left > 0; --left) {
    const ibv_wc completion = ring_.front();
    ring_.pop();
    if (completion.qp_num != qpn) ring_.push(completion);
  }
  size_.store(ring_.size(), std::memory_order_release);
}

}  // namespace weft::device
