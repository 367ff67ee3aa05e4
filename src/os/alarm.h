// Alarm: a timer as a descriptor that becomes readable when the timer expires, for loops that sleep
// often and for short times.
//
// Arming the timer costs a system call and, in a virtual machine, an exit to the hypervisor. So the
// timer is armed anew only if it would otherwise expire too late. It may therefore expire early:
// the loop that it wakes has to check the clock.
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
  // Makes the alarm expire at the time `at` of the monotonic clock, or earlier.
  void ring_by(Time at);
  // To be called when the descriptor was readable. Makes it unreadable until the alarm expires
  // again.
  void rang();

 private:
  explicit Alarm(FileDescriptor fd) : fd_(std::move(fd)) {}

  FileDescriptor fd_;
  Time set_to_ = kNever;
};

}  // namespace weft::os
