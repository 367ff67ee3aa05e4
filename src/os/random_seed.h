// What nobody can guess: for first QPNs, PSNs and keys of regions. Not for secrets (KeySchedule).
#pragma once

#include <sys/random.h>

#include <cstdint>

#include "os/clock.h"

namespace weft::os {

// From the system; from the clock where it has none yet.
inline std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
    seed = static_cast<std::uint64_t>(clock_now().ps());
  return seed;
}

}  // namespace weft::os
