// Alarm: a descriptor that becomes readable at a time. For a loop that sleeps often and for short: it
// is set again only when it would ring too late, because to arm a timer costs a system call and, in a
// virtual machine, an exit to the hypervisor. So it may ring early: whoever it wakes looks again.
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
  // Rings at that time of the monotonic clock, or before.
  void ring_by(Time at);
  // It rang: silent until it is set again.
  void rang();

 private:
  explicit Alarm(FileDescriptor fd) : fd_(std::move(fd)) {}

  FileDescriptor fd_;
  Time set_to_ = kNever;
};

}  // namespace weft::os
