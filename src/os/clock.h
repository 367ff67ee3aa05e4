// The clock of the real world: monotonic, the same for all processes of a host.
#pragma once

#include <ctime>

#include "base/time.h"

namespace weft::os {

inline Time clock_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return Time::from_start(Duration::ns(std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec));
}

}  // namespace weft::os
