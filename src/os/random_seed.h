// An unpredictable seed for first QPNs, PSNs and rkeys. Not for secrets: those come from
// KeySchedule.
#pragma once

#include <sys/random.h>

#include <cstdint>

#include "os/clock.h"

namespace weft::os {

// A random number of the system; from the clock if the system has no random numbers yet.
inline std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
    seed = static_cast<std::uint64_t>(clock_now().ps());
  return seed;
}

}  // namespace weft::os
