#include "os/courtesy.h"

#include <sched.h>

namespace weft::os {

void set_courtesy(Courtesy wanted) {
  thread_local Courtesy now = Courtesy::kTakesTheCore;
  if (wanted == now) return;
  const int ours = now == Courtesy::kWaitsForIt ? SCHED_BATCH : SCHED_OTHER;
  if (sched_getscheduler(0) != ours) return;
  const sched_param none{};
  const int policy = wanted == Courtesy::kWaitsForIt ? SCHED_BATCH : SCHED_OTHER;
  if (sched_setscheduler(0, policy, &none) == 0) now = wanted;
}

}  // namespace weft::os
