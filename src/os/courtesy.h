// Whether a thread that a packet wakes preempts the thread that runs on its core.
#pragma once

namespace weft::os {

enum class Courtesy : unsigned char {
  kTakesTheCore,  // preempts, as the kernel's default policy does: lowest latency
  kWaitsForIt,    // waits until the running thread sleeps or its time slice ends (SCHED_BATCH)
};

// Sets it for the calling thread. Needs no privilege. A thread with another scheduling policy than
// these two keeps its policy.
void set_courtesy(Courtesy wanted);

}  // namespace weft::os
