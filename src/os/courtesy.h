// Courtesy: whether a thread that wakes for a packet preempts the thread that runs on its core.
#pragma once

namespace weft::os {

enum class Courtesy : unsigned char {
  kTakesTheCore,  // preempts the running thread, as by default in Linux: lowest latency
  kWaitsForIt,    // waits until the running thread sleeps or its time slice ends (SCHED_BATCH)
};

// Sets the courtesy of the calling thread. Needs no privilege. A thread with a scheduling policy
// other than SCHED_OTHER and SCHED_BATCH keeps its policy.
void set_courtesy(Courtesy wanted);

}  // namespace weft::os
