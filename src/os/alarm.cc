#include "os/alarm.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>

#include "os/system_error.h"

namespace weft::os {

Result<Alarm> Alarm::open() {
  FileDescriptor fd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!fd.is_open()) return system_error("timerfd_create");
  return Alarm(std::move(fd));
}

void Alarm::ring_by(Time at) {
  if (at >= set_to_) return;
  const std::int64_t ns = at.since_start().ns();
  const itimerspec when{.it_interval = {},
                        .it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000}};
  if (timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0) set_to_ = at;
}

void Alarm::rang() {
  std::uint64_t times = 0;
  [[maybe_unused]] const auto taken = read(fd_.get(), &times, sizeof(times));
  set_to_ = kNever;
}

}  // namespace weft::os
