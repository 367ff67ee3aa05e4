#include "device/async_events.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/log.h"

namespace weft::device {

AsyncEvents::AsyncEvents() : fd_(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)) {}

void AsyncEvents::push(const AsyncEvent& event) {
  const std::lock_guard guard(lock_);
  if (waiting_.size() == kEventsMax) {
    if (!drop_was_logged_) {
      os::log(os::LogLevel::kWarn,
              "{} asynchronous events wait and nobody takes them; later ones are dropped (said "
              "once)",
              kEventsMax);
    }
    drop_was_logged_ = true;
    return;
  }
  waiting_.push_back(event);
  arrived_.notify_all();
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(fd_.get(), &one, sizeof(one));
}

int AsyncEvents::get(const void* owner, AsyncEvent& out) {
  std::unique_lock guard(lock_);
  for (;;) {
    const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const AsyncEvent& e) { return e.owner == owner; });
    if (at != waiting_.end()) {
      out = *at;
      waiting_.erase(at);
      if (out.element != nullptr) unacknowledged_.push_back(out.element);
      std::uint64_t one = 0;
      [[maybe_unused]] const auto taken = read(fd_.get(), &one, sizeof(one));
      return 0;
    }
    if ((fcntl(fd_.get(), F_GETFL) & O_NONBLOCK) != 0) return EAGAIN;
    arrived_.wait(guard);
  }
}

void AsyncEvents::acknowledge(const void* element) {
  const std::lock_guard guard(lock_);
  const auto at = std::find(unacknowledged_.begin(), unacknowledged_.end(), element);
  if (at != unacknowledged_.end()) unacknowledged_.erase(at);
  acknowledged_.notify_all();
}

void AsyncEvents::drop_waiting(bool (*is_meant)(const AsyncEvent&, const void*), const void* what) {
  for (std::size_t left = waiting_.size(); left > 0; --left) {
    const AsyncEvent event = waiting_.front();
    waiting_.pop_front();
    if (!is_meant(event, what)) {
      waiting_.push_back(event);
      continue;
    }
    std::uint64_t one = 0;
    [[maybe_unused]] const auto taken = read(fd_.get(), &one, sizeof(one));
  }
}

void AsyncEvents::forget(const void* element) {
  std::unique_lock guard(lock_);
  drop_waiting([](const AsyncEvent& e, const void* what) { return e.element == what; }, element);
  acknowledged_.wait(guard, [&] {
    return std::find(unacknowledged_.begin(), unacknowledged_.end(), element) ==
           unacknowledged_.end();
  });
}

void AsyncEvents::forget_owner(const void* owner) {
  const std::lock_guard guard(lock_);
  drop_waiting([](const AsyncEvent& e, const void* what) { return e.owner == what; }, owner);
}

}  // namespace weft::device
