// Alarm: a timer as a descriptor that becomes readable when it expires. It is made for loops that
// sleep often and for short times. Arming the timer costs a system call and, in a virtual machine,
// an exit to the hypervisor, so the timer is only armed anew when it would expire too late. It may
// therefore expire early: the loop that it wakes has to check the clock.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "os/file_descriptor.h"

namespace weft::os {

class Alarm {
 public:
  // Errors: kSystem.
  static Result<Alarm> open();

  int fd() const { return fd_.get(); }
  // The alarm expires at `at` of the monotonic clock, or earlier.
  void ring_by(Time at);
  // To be called when the descriptor was readable: it is not readable from then on, until ring_by()
  // arms the timer.
  void rang();

 private:
  explicit Alarm(FileDescriptor fd) : fd_(std::move(fd)) {}

  FileDescriptor fd_;
  Time set_to_ = kNever;
};

}  // namespace weft::os
