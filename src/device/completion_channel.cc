#include "device/completion_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "os/system_error.h"

namespace weft::device {

Result<CompletionChannel*> CompletionChannel::create() {
  const int fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  if (fd < 0) return os::system_error("eventfd");
  return new CompletionChannel(fd);
}

CompletionChannel::Member& CompletionChannel::member(CompletionQueue& cq) {
  const auto at =
      std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.cq == &cq; });
  WEFT_ASSERT(at != members_.end());
  return *at;
}

void CompletionChannel::attach(CompletionQueue& cq) {
  const std::lock_guard guard(lock_);
  members_.push_back({.cq = &cq});
}

void CompletionChannel::detach(CompletionQueue& cq) {
  std::unique_lock guard(lock_);
  for (std::uint64_t& waiting = member(cq).waiting; waiting > 0; --waiting) {
    std::uint64_t one = 0;
    [[maybe_unused]] const auto taken = read(fd_.get(), &one, sizeof(one));
  }
  acknowledged_.wait(guard, [&] { return member(cq).got == 0; });
  std::erase_if(members_, [&](const Member& m) { return m.cq == &cq; });
}

std::size_t CompletionChannel::attached() const {
  const std::lock_guard guard(lock_);
  return members_.size();
}

void CompletionChannel::notify(CompletionQueue& cq) {
  const std::lock_guard guard(lock_);
  ++member(cq).waiting;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(fd_.get(), &one, sizeof(one));
}

// Invariant: the eventfd's count equals the number of waiting events; both change under the lock.
int CompletionChannel::get(CompletionQueue*& out) {
  for (;;) {
    {
      const std::lock_guard guard(lock_);
      for (std::size_t i = 0; i < members_.size(); ++i) {
        Member& next = members_[turn_++ % members_.size()];
        if (next.waiting == 0) continue;
        std::uint64_t one = 0;
        [[maybe_unused]] const auto taken = read(fd_.get(), &one, sizeof(one));
        --next.waiting;
        ++next.got;
        out = next.cq;
        return 0;
      }
    }
    if ((fcntl(fd_.get(), F_GETFL) & O_NONBLOCK) != 0) return EAGAIN;
    pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, -1) < 0) return errno;
  }
}

void CompletionChannel::acknowledge(CompletionQueue& cq, std::uint32_t count) {
  const std::lock_guard guard(lock_);
  Member& of = member(cq);
  of.got -= std::min<std::uint64_t>(of.got, count);
  acknowledged_.notify_all();
}

}  // namespace weft::device
