#include "device/ctl_event_cq.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace weft::device {

Result<std::unique_ptr<EvEventCq>> EvEventCq::create(std::unique_ptr<control::EvEventQueue> queue,
                                                     CompletionQueue* notify) {
  std::unique_ptr<EvEventCq> cq(new EvEventCq(std::move(queue)));
  if (notify == nullptr) return cq;
  cq->stop_ = os::FileDescriptor(eventfd(0, EFD_CLOEXEC));
  cq->epoll_ = os::FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  // Edge triggered: an event that the program does not poll wakes this thread only once.
  epoll_event stop{.events = EPOLLIN, .data = {.u32 = 0}};
  epoll_event news{.events = EPOLLIN | EPOLLET, .data = {.u32 = 1}};
  if (!cq->stop_.is_open() || !cq->epoll_.is_open() ||
      epoll_ctl(cq->epoll_.get(), EPOLL_CTL_ADD, cq->stop_.get(), &stop) != 0 ||
      epoll_ctl(cq->epoll_.get(), EPOLL_CTL_ADD, cq->queue_->fd(), &news) != 0) {
    return Error{ErrorKind::kSystem, "no descriptors left for an event queue"};
  }
  cq->thread_ = std::thread([self = cq.get(), notify] { self->watch(*notify); });
  return cq;
}

EvEventCq::~EvEventCq() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void EvEventCq::watch(CompletionQueue& notify) const {
  for (;;) {
    std::array<epoll_event, 2> ready;
    const int woken = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), -1);
    if (woken < 0 && errno != EINTR) return;
    for (int i = 0; i < woken; ++i) {
      if (ready[static_cast<std::size_t>(i)].data.u32 == 0) return;
      // A push notifies the channel if the CQ is armed. Only that is wanted, so the completion is
      // taken out again.
      ibv_wc none{};
      if (notify.push(none, Solicited::kYes) == CompletionQueue::Pushed::kYes)
        (void)notify.poll({&none, 1});
    }
  }
}

std::size_t EvEventCq::poll(std::span<control::EvEvent> out) {
  const std::lock_guard guard(lock_);
  return queue_->poll(out);
}

}  // namespace weft::device
