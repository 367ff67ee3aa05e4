// WakeEvent: a descriptor that any thread makes readable, to end the sleep of another thread.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/result.h"
#include "os/file_descriptor.h"
#include "os/system_error.h"

namespace weft::os {

class WakeEvent {
 public:
  // Errors: kSystem.
  static Result<WakeEvent> open() {
    FileDescriptor fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!fd.is_open()) return system_error("eventfd");
    return WakeEvent(std::move(fd));
  }

  int fd() const { return fd_.get(); }
  // May be called from any thread, and from a signal handler.
  void signal() const {
    const std::uint64_t one = 1;
    // If the counter is full, the descriptor is readable anyway.
    [[maybe_unused]] const auto written = write(fd(), &one, sizeof(one));
  }
  // Makes the descriptor unreadable until the next signal().
  void clear() const {
    std::uint64_t signals = 0;
    [[maybe_unused]] const auto taken = read(fd(), &signals, sizeof(signals));
  }

 private:
  explicit WakeEvent(FileDescriptor fd) : fd_(std::move(fd)) {}

  FileDescriptor fd_;
};

}  // namespace weft::os
